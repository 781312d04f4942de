"""Files of GGUF, and the models that they stand for."""
