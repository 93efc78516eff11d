"""Exploration benchmarks of episodic agents: after how many episodes is a problem solved?"""
