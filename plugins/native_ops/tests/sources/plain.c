/* A library of no operators. */
int answer(void) { return 42; }
