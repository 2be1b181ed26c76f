# kotad in a small image: built in one stage with the same scripts as everywhere, run in another that
# has only the run-time libraries. docs/install.md tells more; tests/dockerfile.py runs it.
#
#   docker build -t kota .
#   docker run -p 7420:7420 kota                                   the demo world, read only
#   docker run -p 7420:7420 -v "$PWD/my-world:/world:ro" -e KOTA_WORLD=/world kota
#   docker run -p 7420:7420 -v kota-data:/data -v "$PWD/tokens:/run/tokens:ro" \
#       -e KOTA_READ_ONLY=false -e KOTA_TOKEN_FILE=/run/tokens kota
#   docker run --gpus all -p 7420:7420 kota                        sand on an NVIDIA GPU
#
# Settings come from /etc/kotad.conf and the environment, which wins, so that `kotad --healthcheck`
# reads the same as the daemon. Flags behind the image's name reach the daemon alone.

FROM debian:bookworm-slim AS build
WORKDIR /src
COPY deploy/install-deps.sh deploy/
RUN sh deploy/install-deps.sh build
COPY . .
RUN make -j"$(nproc)" install DESTDIR=/out PREFIX=/usr/local \
    && strip /out/usr/local/bin/*

FROM debian:bookworm-slim
COPY deploy/install-deps.sh /usr/local/share/kota/
RUN sh /usr/local/share/kota/install-deps.sh runtime \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && useradd --system --uid 7420 --no-create-home --shell /usr/sbin/nologin kota \
    && install -d -o kota -g kota /data
# The driver's libraries come from the NVIDIA container toolkit; that EGL looks for them does not.
COPY deploy/docker/10_nvidia.json /usr/share/glvnd/egl_vendor.d/
COPY deploy/docker/kotad.conf /etc/
COPY --from=build /out/usr/local/bin/ /usr/local/bin/
COPY --from=build /out/usr/local/share/kota/ /usr/local/share/kota/
ENV KOTA_CONFIG=/etc/kotad.conf NVIDIA_DRIVER_CAPABILITIES=graphics,utility
USER kota
VOLUME /data
EXPOSE 7420 7421
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["kotad", "--healthcheck"]
ENTRYPOINT ["kotad"]
