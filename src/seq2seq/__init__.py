"""RNN sequence-to-sequence models with and without attention, and the instruments that show the difference.

The floors, from the ground up; each imports only from those below it:

1. ``types``, ``errors``: the shared nouns with the legend of dimension letters, and what a user can do wrong.
2. ``attention``, ``data``, ``metrics``: the attentions; corpora, tokenizer and batches; corpus scores.
3. ``models``: encoder, bridge and decoders, assembled from a plain recipe.
4. ``decoding``, ``probes``: searching for a translation; measuring what a model does.
5. ``training``, ``report``: the Lightning module and its callbacks; tables and figures drawn from run folders.
6. ``translator``: text in, text out.
7. ``cli``: the commands, the only place that knows Hydra.

Read ``types``, ``attention/base.py``, ``attention/scaled.py``, ``models/parallel.py``, ``training/task.py``, in that order.
"""
