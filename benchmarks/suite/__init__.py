"""The benchmark suite: the default agent and tuned alternatives on many problem families."""
