"""From tables of text, numbers, booleans and dates to the inputs of agents.

schema = gfucb.tables.Schema.of(history, task="store", action="promotion", reward="revenue")
agent = gfucb.GFUCB(schema.num_tasks)
agent.learn(*schema.samples(history))
offers = schema.offers(today)
decision = agent.decide(*offers)
print(offers.chosen(decision))
"""

from gfucb.tables.column_kinds import Boolean, Category, Number
from gfucb.tables.columns import Columns
from gfucb.tables.date_kind import Date
from gfucb.tables.labels import Labels
from gfucb.tables.offers import Offers
from gfucb.tables.schema import Schema
from gfucb.tables.transformed import Transformed
from gfucb.tables.vector_kinds import Embedding, Hashed, Vector

__all__ = [
    "Boolean",
    "Category",
    "Columns",
    "Date",
    "Embedding",
    "Hashed",
    "Labels",
    "Number",
    "Offers",
    "Schema",
    "Transformed",
    "Vector",
]
