"""The paper's proximal distance algorithms: MM, SD and the annealing around them.

`penalised` has the objective f_rho and its surrogate, `reference` the paper's Algorithms 1, 2 and 3 as the
paper prints them, `compiled` the fast loops that take the same steps, `anneal` the solver around them.
"""
