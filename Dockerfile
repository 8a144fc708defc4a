# The gateway in a container: the locked requirements, a user of its own, its data in /var/lib/rfhbridge.
#
#   docker build .                      the gateway; everything it needs
#   docker build --target ibm-mq .      with IBM's ibmmq, and IBM's client library out of IBM's own container
#   docker build --target audit .       with PySpark and Java, for `rfhbridge audit`
#
# `make image-digests` writes the digest of each base behind its version, where an image registry can be reached.
ARG MQ_IMAGE=icr.io/ibm-messaging/mq:9.4.2.0-r1
ARG PYTHON_IMAGE=python:3.12.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY requirements requirements
RUN pip install --require-hashes --no-deps -r requirements/build.txt \
    && python -m venv /opt/rfhbridge \
    && /opt/rfhbridge/bin/pip install --require-hashes --no-deps -r requirements/run.txt
COPY . .
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/rfhbridge/bin/pip install --no-deps /wheels/*.whl
# With --build-arg COMPILED=no the image runs the sources, which are slower.
ARG COMPILED=yes
RUN [ "$COMPILED" = no ] || { apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && pip install --require-hashes --no-deps --target /mypyc -r requirements/build.txt -r requirements/compile.txt \
    && PYTHONPATH=/mypyc /opt/rfhbridge/bin/python deploy/setup/compiled.py; }

FROM build AS build-ibm-mq
RUN sed -n '/^ibmmq==/,/[^\\]$/p' requirements/ibm.txt >/tmp/ibmmq.txt \
    && /opt/rfhbridge/bin/pip install --require-hashes --no-deps --only-binary :all: -r /tmp/ibmmq.txt

FROM build AS build-audit
RUN /opt/rfhbridge/bin/pip install --require-hashes --no-deps -r requirements/build.txt \
    && /opt/rfhbridge/bin/pip install --require-hashes --no-deps --no-build-isolation -r requirements/audit.txt

FROM ${MQ_IMAGE} AS ibm-mq-server

FROM ${PYTHON_IMAGE} AS base
RUN useradd --system --uid 10001 --home-dir /var/lib/rfhbridge --create-home rfhbridge
ENV PATH="/opt/rfhbridge/bin:$PATH" PYTHONUNBUFFERED=1
VOLUME /var/lib/rfhbridge
EXPOSE 1883
ENTRYPOINT ["rfhbridge"]
CMD ["run", "--listen", "0.0.0.0:1883", "--data", "/var/lib/rfhbridge"]

FROM base AS ibm-mq
COPY --from=ibm-mq-server /opt/mqm /opt/mqm
COPY --from=build-ibm-mq /opt/rfhbridge /opt/rfhbridge
ENV LD_LIBRARY_PATH=/opt/mqm/lib64 MQ_FILE_PATH=/opt/mqm
USER rfhbridge

FROM base AS audit
RUN apt-get update && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build-audit /opt/rfhbridge /opt/rfhbridge
USER rfhbridge

FROM base AS gateway
COPY --from=build /opt/rfhbridge /opt/rfhbridge
USER rfhbridge
