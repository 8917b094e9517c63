# The job for the Spark operators: the job's image, started as Spark on Kubernetes starts driver and executors. `make images` builds it.
ARG JOB=laggard:0.1.0

FROM ${JOB}
USER 0:0
# where Spark mounts the driver's settings: its home has one name whatever Python's version is
RUN cd /opt && ln -s laggard/lib/python3*/site-packages/pyspark spark && install -d spark/conf
COPY jobs /opt/laggard/jobs
COPY docker/spark-entrypoint.sh /opt/entrypoint.sh
ENV SPARK_HOME=/opt/spark \
    PYSPARK_PYTHON=/opt/laggard/bin/python \
    PYSPARK_DRIVER_PYTHON=/opt/laggard/bin/python
USER 10001:10001
ENTRYPOINT ["/opt/entrypoint.sh"]
CMD ["run"]
