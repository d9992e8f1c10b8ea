"""Text: pure functions on strings for words, names, sentences, questions and the replies of models."""
