# The gateway in a container: the locked requirements, a user of its own, its data in /var/lib/rfhbridge.
FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY requirements requirements
RUN pip install --require-hashes --no-deps -r requirements/build.txt \
    && python -m venv /opt/rfhbridge \
    && /opt/rfhbridge/bin/pip install --require-hashes --no-deps -r requirements/run.txt
COPY . .
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/rfhbridge/bin/pip install --no-deps /wheels/*.whl

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/rfhbridge --create-home rfhbridge
COPY --from=build /opt/rfhbridge /opt/rfhbridge
ENV PATH="/opt/rfhbridge/bin:$PATH" PYTHONUNBUFFERED=1
USER rfhbridge
VOLUME /var/lib/rfhbridge
EXPOSE 1883
ENTRYPOINT ["rfhbridge"]
CMD ["run", "--listen", "0.0.0.0:1883", "--data", "/var/lib/rfhbridge"]
