# %% [markdown]
# # Flights, airlines, delays
# Open this file as a notebook: VS Code and PyCharm run its cells as they are, and
# `jupytext --to ipynb notebook.py` converts it for Jupyter. Or run it as a program.
#
# It needs a cluster (`barnabas cluster start`) in which the topics do not exist yet.

# %%
import os
import sys
import tempfile
from pathlib import Path

# Jupyter starts in the notebook's folder; an editor may start elsewhere.
sys.path.insert(0, str(Path(globals().get("__file__", "notebook.py")).resolve().parent))
import check
import pipeline
import produce
from flights import expected, load_airlines, load_flights

BOOTSTRAP = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
COUNT = int(os.environ.get("FLIGHTS", "20000"))

# %% [markdown]
# The Python client fills `flights`, and the compacted `airlines`.

# %%
produce.fill(BOOTSTRAP, COUNT)

# %% [markdown]
# A batch to look at the records. Only the format differs from a notebook for Kafka.

# %%
spark = pipeline.session()
records = (
    spark.read.format("barnabas")
    .option("kafka.bootstrap.servers", BOOTSTRAP)
    .option("subscribe", "flights")
    .load()
)
records.selectExpr("partition", "offset", "CAST(value AS STRING)").show(5, truncate=100)
records.groupBy("partition").count().show()

# %% [markdown]
# The airlines as a table: the newest record of each key.

# %%
airlines = pipeline.airlines(spark, BOOTSTRAP)
airlines.show(5, truncate=False)

# %% [markdown]
# The stream: days of each airline, with a watermark, joined with the table. It runs until it
# has read what there is.

# %%
delays = pipeline.delays(pipeline.flights(spark, BOOTSTRAP, 5_000), airlines)
checkpoint = tempfile.mkdtemp(prefix="flight-delays-")
query = pipeline.write(delays, BOOTSTRAP, checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
for progress in query.recentProgress:
    print(progress["batchId"], progress["numInputRows"], progress["eventTime"].get("watermark"))

# %% [markdown]
# The same in pandas, from the source.

# %%
found = check.published(spark, BOOTSTRAP)
wrong = check.differences(found, expected(load_flights(COUNT), load_airlines()))
print(f"{len(found)} rows, {len(wrong)} differences")
assert found and not wrong, wrong[:5]
