/* Clients of a socket server, thousands in one process, as cheap as they can be.

   load ADDRESS PATH CLIENTS MARKER OUTPUT [SCRIPT]

   ADDRESS is host:port of IPv4. Each client comes from a loopback address of its own. With a SCRIPT
   each says its lines there: clients are separated by an empty line; the first line is sent when the
   socket is open, the rest when that is answered, and the client is ready when each has an answer.

   Prints "open SECONDS" when all are ready. Then reads commands, a line each: "count" prints how
   many numbered frames have come, "clear" forgets them, "stop" (or the end of the input) writes
   them to OUTPUT and prints one line of JSON. A frame is numbered by the digits after MARKER
   (blanks and a quote may be between), the largest if there are several. OUTPUT holds pairs of 64
   bits: the number, and when the frame was read, in microseconds of CLOCK_MONOTONIC. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 64 /* clients that are being opened */
#define ROOM (1 << 20)

enum { OPENING, TALKING, READY, GONE };

struct client {
    int fd, state;
    int first, lines, answers; /* of the script */
    uint64_t last;
    char *rest; /* the beginning of a frame */
    size_t kept;
};

struct line {
    const char *text;
    size_t size;
};

static struct client *clients;
static struct line *script;
static int count, opened, ready, epoll;
static const char *marker, *path;
static size_t marker_size;
static struct sockaddr_in server;
static uint64_t *seen, numbered, other, disorder, lost, room;
static int close_code;

static void fail(const char *what, const char *more) {
    fprintf(stderr, "load: %s: %s\n", what, more ? more : strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

static double cpu(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_utime.tv_sec + use.ru_stime.tv_sec +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void put(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) {
            struct pollfd wait = {fd, POLLOUT, 0};
            if (errno == EAGAIN && poll(&wait, 1, 10000) == 1) continue;
            return; /* what is wrong is seen by reading */
        }
        data += sent;
        size -= sent;
    }
}

/* Masked with zeros, which is a mask like any other. */
static void say(int fd, int opcode, const char *text, size_t size) {
    char head[14] = {(char)(0x80 | opcode)};
    size_t at = 2;
    if (size < 126) {
        head[1] = (char)(0x80 | size);
    } else {
        head[1] = (char)(0x80 | 126);
        head[2] = (char)(size >> 8);
        head[3] = (char)size;
        at = 4;
    }
    at += 4;
    char *frame = malloc(at + size);
    memcpy(frame, head, at);
    memcpy(frame + at, text, size);
    put(fd, frame, at + size);
    free(frame);
}

static void lose(struct client *one) {
    if (one->state != READY) fail("a client was closed before it was ready", "");
    close(one->fd);
    one->state = GONE;
    lost++;
}

static void begin_next(void) {
    int number = opened++;
    struct client *one = &clients[number];
    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (one->fd < 0) fail("socket", NULL);
    int on = 1;
    setsockopt(one->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    setsockopt(one->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct sockaddr_in own = {.sin_family = AF_INET};
    own.sin_addr.s_addr = htonl(0x7f010001u + number);
    if (bind(one->fd, (struct sockaddr *)&own, sizeof own)) fail("bind", NULL);
    while (connect(one->fd, (struct sockaddr *)&server, sizeof server))
        if (errno != EINTR) fail("connect", NULL);
    fcntl(one->fd, F_SETFL, O_NONBLOCK);
    char text[1024];
    int size = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                        "Sec-WebSocket-Version: 13\r\n\r\n",
                        path);
    put(one->fd, text, size);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, one->fd, &event)) fail("epoll", NULL);
}

static void is_ready(struct client *one) {
    one->state = READY;
    ready++;
    if (opened < count) begin_next();
}

static void text_frame(struct client *one, const char *text, size_t size, uint64_t at) {
    if (one->state == TALKING) {
        if (memmem(text, size, "\"error\"", 7)) {
            fprintf(stderr, "load: refused: %.*s\n", (int)(size > 400 ? 400 : size), text);
            exit(1);
        }
        int from = one->first;
        if (!one->answers++)
            for (int i = 1; i < one->lines; i++)
                say(one->fd, 1, script[from + i].text, script[from + i].size);
        if (one->answers == one->lines) is_ready(one);
        return;
    }
    uint64_t largest = 0;
    int found = 0;
    const char *place = text;
    while ((place = memmem(place, text + size - place, marker, marker_size))) {
        uint64_t number = 0;
        place += marker_size;
        while (place < text + size && (*place == ' ' || *place == '"')) place++;
        while (place < text + size && *place >= '0' && *place <= '9')
            number = number * 10 + (*place++ - '0');
        found = 1;
        if (number > largest) largest = number;
    }
    if (!found) {
        other++;
        return;
    }
    if (one->last && largest <= one->last) disorder++;
    one->last = largest;
    if (numbered == room) {
        room = room ? room * 2 : 1 << 20;
        seen = realloc(seen, room * 2 * sizeof *seen);
        if (!seen) fail("memory", NULL);
    }
    seen[numbered * 2] = largest;
    seen[numbered * 2 + 1] = at;
    numbered++;
}

/* Read what has come: the answer to the handshake, or frames. What is left begins the next read. */
static void readable(struct client *one) {
    static char buffer[ROOM];
    memcpy(buffer, one->rest, one->kept);
    ssize_t got = recv(one->fd, buffer + one->kept, ROOM - one->kept, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return lose(one);
    uint64_t at = now();
    size_t size = one->kept + got, used = 0;
    if (one->state == OPENING) {
        char *end = memmem(buffer, size, "\r\n\r\n", 4);
        if (end) {
            if (size < 12 || memcmp(buffer + 9, "101", 3)) {
                buffer[size > 60 ? 60 : size] = 0;
                fail("the handshake was answered", buffer);
            }
            used = end + 4 - buffer;
            one->state = TALKING;
            if (one->lines) say(one->fd, 1, script[one->first].text, script[one->first].size);
            else is_ready(one);
        }
    }
    while (one->state != OPENING && size - used >= 2) {
        unsigned char *head = (unsigned char *)buffer + used;
        size_t length = head[1] & 127, from = 2;
        if (length == 126) {
            if (size - used < 4) break;
            length = head[2] << 8 | head[3];
            from = 4;
        } else if (length == 127) {
            if (size - used < 10) break;
            length = 0;
            for (int i = 2; i < 10; i++) length = length << 8 | head[i];
            from = 10;
        }
        if (length > ROOM / 2) fail("a frame is too large", "");
        if (size - used < from + length) break;
        char *text = buffer + used + from;
        int opcode = head[0] & 15;
        if (opcode == 1) text_frame(one, text, length, at);
        else if (opcode == 9) say(one->fd, 10, text, length);
        else if (opcode == 8 && length > 1)
            close_code = (unsigned char)text[0] << 8 | (unsigned char)text[1];
        used += from + length;
    }
    one->kept = size - used;
    if (one->kept) {
        one->rest = realloc(one->rest, one->kept);
        memcpy(one->rest, buffer + used, one->kept);
    }
}

static void read_script(const char *name) {
    FILE *file = fopen(name, "r");
    if (!file) fail(name, NULL);
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    int lines = 0, number = 0, space = 0;
    while ((length = getline(&text, &size, file)) > 0) {
        if (text[length - 1] == '\n') length--;
        if (!length) {
            if (++number < count) clients[number].first = lines;
            continue;
        }
        if (number >= count) break;
        if (lines == space) {
            space = space ? space * 2 : 1024;
            script = realloc(script, space * sizeof *script);
        }
        script[lines++] = (struct line){strndup(text, length), length};
        clients[number].lines++;
    }
    fclose(file);
}

static void report(const char *output, double cpu_before, uint64_t since) {
    FILE *file = fopen(output, "wb");
    if (!file || fwrite(seen, 16, numbered, file) != numbered || fclose(file)) fail(output, NULL);
    printf("{\"numbered\":%lu,\"other\":%lu,\"disorder\":%lu,\"lost\":%lu,\"close_code\":%d,"
           "\"cpu\":%.6f,\"seconds\":%.6f}\n",
           numbered, other, disorder, lost, close_code, cpu() - cpu_before, (now() - since) / 1e6);
}

int main(int given, char **words) {
    if (given < 6) fail("usage", "load ADDRESS PATH CLIENTS MARKER OUTPUT [SCRIPT]");
    setvbuf(stdout, NULL, _IOLBF, 0);
    char *colon = strrchr(words[1], ':');
    if (!colon) fail("address", "no port");
    *colon = 0;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(colon + 1))};
    if (!inet_pton(AF_INET, words[1], &server.sin_addr)) fail("address", "not of IPv4");
    path = words[2];
    count = atoi(words[3]);
    marker = words[4];
    marker_size = strlen(marker);
    clients = calloc(count, sizeof *clients);
    if (given > 6) read_script(words[6]);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < (rlim_t)count + 16) fail("open files", "fewer are allowed than clients");
    epoll = epoll_create1(0);
    uint64_t since = now();
    double cpu_before = cpu();
    for (int i = 0; i < AT_ONCE && i < count; i++) begin_next();
    struct epoll_event commands = {.events = EPOLLIN, .data.ptr = NULL}, events[1024];
    int told = 0;
    for (;;) {
        if (ready == count && !told) {
            printf("open %.3f\n", (now() - since) / 1e6);
            told = 1;
            since = now();
            cpu_before = cpu();
            epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &commands);
        }
        int found = epoll_wait(epoll, events, 1024, 60000);
        if (!found && !told) fail("clients aren't answered", "for a minute");
        for (int i = 0; i < found; i++) {
            struct client *one = events[i].data.ptr;
            if (one) {
                if (one->state != GONE) readable(one);
                continue;
            }
            char command[64];
            ssize_t size = read(0, command, sizeof command);
            if (size > 1 && !strncmp(command, "count", 5)) {
                printf("%lu\n", numbered);
            } else if (size > 1 && !strncmp(command, "clear", 5)) {
                numbered = other = disorder = lost = 0;
                since = now();
                cpu_before = cpu();
                printf("cleared\n");
            } else {
                report(words[5], cpu_before, since);
                return 0;
            }
        }
    }
}
