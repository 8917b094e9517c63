"""Tables as data: columns, types and texts, from which all engines' schemas are made."""
