"""Where Spark runs: Java, the session, the embedded standalone cluster and its processes."""
