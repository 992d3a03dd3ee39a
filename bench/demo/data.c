/* data.c - the demo's input: a .npy file made once and read back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

enum { HEADER = 128 };

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

float *data_alloc(size_t count)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, count * sizeof(float)) != 0) {
        fprintf(stderr, "demo: no memory for %zu MiB\n", count * sizeof(float) >> 20);
        return NULL;
    }
    memset(p, 0, count * sizeof(float)); /* so that no timed run meets a fresh page */
    return p;
}

static void header_text(char h[HEADER], size_t rows, size_t cols)
{
    memset(h, ' ', HEADER);
    memcpy(h, "\x93NUMPY\x01\x00", 8);
    h[8] = (char)(HEADER - 10);
    h[9] = 0;
    int n = snprintf(h + 10, HEADER - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
    h[10 + n] = ' ';
    h[HEADER - 1] = '\n';
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Four 16-bit numbers added up, centred, with variance 1. */
static float about_normal(uint64_t i)
{
    uint64_t z = mix(i * 0x9e3779b97f4a7c15u + 1);
    int32_t s = (int32_t)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return (float)(s - 131070) * (1.0f / 37837.0f);
}

static bool is_there(const char *path, size_t rows, size_t cols)
{
    char want[HEADER], got[HEADER];
    header_text(want, rows, cols);
    FILE *f = fopen(path, "rb");
    bool ok = f && fread(got, 1, HEADER, f) == HEADER && memcmp(want, got, HEADER) == 0 &&
              fseek(f, 0, SEEK_END) == 0 &&
              (size_t)ftell(f) == HEADER + rows * cols * sizeof(float);
    if (f)
        fclose(f);
    return ok;
}

static bool write_file(FILE *f, size_t rows, size_t cols)
{
    char head[HEADER];
    float *row = malloc(cols * sizeof *row);
    header_text(head, rows, cols);
    bool ok = row && fwrite(head, 1, HEADER, f) == HEADER;
    for (size_t r = 0; ok && r < rows; r++) {
        for (size_t c = 0; c < cols; c++)
            row[c] = about_normal(r * cols + c);
        ok = fwrite(row, sizeof *row, cols, f) == cols;
    }
    free(row);
    return ok;
}

bool data_make(const char *path, size_t rows, size_t cols)
{
    char part[4096];
    if (is_there(path, rows, cols))
        return true;
    snprintf(part, sizeof part, "%s.part", path); /* renamed when it is whole */
    FILE *f = fopen(part, "wb");
    bool ok = f && write_file(f, rows, cols);
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok || rename(part, path) != 0) {
        fprintf(stderr, "demo: cannot write %s: %s\n", path, strerror(errno));
        unlink(part);
        return false;
    }
    return true;
}

float *data_read(const char *path, size_t *rows, size_t *cols)
{
    char head[HEADER + 1] = {0};
    FILE *f = fopen(path, "rb");
    const char *shape;
    float *x = NULL;
    if (!f || fread(head, 1, HEADER, f) != HEADER || memcmp(head, "\x93NUMPY\x01", 7) != 0 ||
        !strstr(head + 10, "'<f4'") || !(shape = strstr(head + 10, "'shape': (")) ||
        sscanf(shape, "'shape': (%zu, %zu)", rows, cols) != 2)
        fprintf(stderr, "demo: %s is no .npy file of the demo\n", path);
    else if ((x = data_alloc(*rows * *cols)) &&
             fread(x, sizeof *x, *rows * *cols, f) != *rows * *cols) {
        fprintf(stderr, "demo: %s is cut short\n", path);
        free(x);
        x = NULL;
    }
    if (f)
        fclose(f);
    return x;
}
