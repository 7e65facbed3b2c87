"""The paper's proximal distance algorithms: MM, SD and the annealing, which repeats them for growing rho.

`penalised` has their objective f_rho (loss, ridge, and the squared distance to the sparse set times rho),
`reference` Algorithms 1 to 3 line by line, `compiled` faster loops of the same steps, `anneal` the solvers.
"""
