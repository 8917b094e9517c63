"""Are the rows right? Invariants of the tables, checked on the tables themselves without a JVM; nothing is written."""
