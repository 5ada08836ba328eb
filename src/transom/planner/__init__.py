"""From the algebra to a physical plan: which tactic runs each operator, why not the others, and where the plan is cut."""
