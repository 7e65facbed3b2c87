"""The paper's proximal distance algorithms: MM, SD and the annealing of rho around them.

`penalised` has the objective f_rho and its surrogate, `reference` the paper's Algorithms 1, 2 and 3 line by
line, `compiled` fast loops that take the same steps, and `anneal` the solver classes.
"""
