"""JSON Schemas of the answers: of the API, and of documents that are declared as classes."""
