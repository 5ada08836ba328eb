"""From the algebra to a physical plan: which tactic runs each operator, why not another, and where the plan is cut."""
