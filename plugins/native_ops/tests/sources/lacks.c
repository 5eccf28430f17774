/* A library that calls what the API does not have. */
struct Interpreter;
void TfLiteInterpreterInvoke(struct Interpreter*);
void TfLiteInterpreterDelete(struct Interpreter*);

void* LacksOperator(void) {
  TfLiteInterpreterInvoke((struct Interpreter*)0);
  TfLiteInterpreterDelete((struct Interpreter*)0);
  return 0;
}
