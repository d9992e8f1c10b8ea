"""Steps of retrieval that two or more strategies share."""
