"""Models as today's converters write them: made with random weights, recorded from LiteRT, and graded on oplet."""
