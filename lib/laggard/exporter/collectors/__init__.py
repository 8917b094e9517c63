"""One file per subject: each collector yields the families of its subject from one snapshot."""
