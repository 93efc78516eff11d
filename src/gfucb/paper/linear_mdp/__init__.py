"""linear_mdp."""
