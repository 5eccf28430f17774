"""Every built-in operator against LiteRT: random models of one node, run by both, must agree or be refused by both."""
