"""The sink: `df.write.format("barnabas")` and `df.writeStream.format("barnabas")`.

options         what the user asks for
columns         which columns a row has, and Arrow batches as records
producing       the records of one task, sent by a producer
identity        which job, batch and attempt a task belongs to
records         what the topic of decisions holds, and what follows from it (pure)
decisions_topic how that topic is created, and which topic is refused
decision_log    what is read from it
task            an attempt that writes in a transaction and prepares it
stops           where tests stop a process
driver          the decision, and what follows from it
writers         what Spark calls
"""
