# kotad in a small image: built in one stage with the same scripts as everywhere, run in another that
# has only the run-time libraries.
#
#   docker build -t kota .
#   docker run -p 7420:7420 kota                                   the demo world
#   docker run -p 7420:7420 -v "$PWD/my-world:/world:ro" kota \
#       --listen 0.0.0.0:7420 --read-only --world /world           your own
#
# kotad listens elsewhere than on loopback only with --read-only or with a token file. The default
# below is --read-only; to let clients write, mount a token file and replace the arguments:
#   … -v "$PWD/tokens:/run/tokens:ro" kota --listen 0.0.0.0:7420 --token-file /run/tokens --world /world

FROM debian:bookworm-slim AS build
WORKDIR /src
COPY deploy/install-deps.sh deploy/
RUN sh deploy/install-deps.sh build
COPY . .
RUN make -j"$(nproc)" install DESTDIR=/out PREFIX=/usr/local \
    && strip /out/usr/local/bin/* \
    && build/release/kota-worldgen demo /out/usr/local/share/kota/demo

FROM debian:bookworm-slim
COPY deploy/install-deps.sh /usr/local/share/kota/
RUN sh /usr/local/share/kota/install-deps.sh runtime \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --shell /usr/sbin/nologin kota \
    && install -d -o kota /world
COPY --from=build /out/ /
USER kota
VOLUME /world
EXPOSE 7420
HEALTHCHECK --interval=30s --timeout=5s CMD ["kota", "--timeout", "4", "ls"]
ENTRYPOINT ["kotad"]
CMD ["--listen", "0.0.0.0:7420", "--read-only", "--world", "/usr/local/share/kota/demo"]
