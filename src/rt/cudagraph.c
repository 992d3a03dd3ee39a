/* cudagraph.c - graphs: what was queued on a stream, launched again at once.
 *
 * A capture of Kiln's own is relaxed: the driver then does not mind what the thread does besides,
 * as loading a kernel that is launched for the first time.  What would hurt a capture, as waiting,
 * the library refuses before the driver hears of it. */
#include "rt/cuda.h"

kiln_status kl_cuda_record(kl_cuda *c, void *stream, kl_cudaerr *e)
{
    const struct kl_cuda_api *api = &c->api;
    *e = (kl_cudaerr){0};
    if (!api->StreamBeginCapture || !api->StreamEndCapture || !api->GraphInstantiate ||
        !api->GraphGetNodes || !api->GraphLaunch || !api->GraphExecDestroy || !api->GraphDestroy)
        return kl_cuda_fail(e, KL_K1890, KILN_E_UNSUPPORTED, "this CUDA driver has no graphs");
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    kiln_status s = kl_cuda_check(c, api->StreamBeginCapture(stream, KL_CU_CAPTURE_RELAXED),
                                  "cuStreamBeginCapture", e);
    kl_cuda_leave(c, in);
    return s;
}

kiln_status kl_cuda_record_end(kl_cuda *c, void *stream, void **exec, size_t *nodes,
                               kl_cudaerr *e)
{
    const struct kl_cuda_api *api = &c->api;
    void *graph = NULL;
    *e = (kl_cudaerr){0};
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    kiln_status s =
        kl_cuda_check(c, api->StreamEndCapture(stream, &graph), "cuStreamEndCapture", e);
    if (s && kl_cuda_capturing(c, stream))
        api->StreamEndCapture(stream, &graph); /* the stream must not stay like that */
    if (!s && exec) {
        int mode = kl_cuda_relax(c); /* another stream may be under capture */
        s = kl_cuda_check(c, api->GraphGetNodes(graph, NULL, nodes), "cuGraphGetNodes", e);
        if (!s)
            s = kl_cuda_check(c, api->GraphInstantiate(exec, graph, NULL, NULL, 0),
                              "cuGraphInstantiate", e);
        kl_cuda_restore(c, mode);
    }
    if (graph)
        api->GraphDestroy(graph);
    kl_cuda_leave(c, in);
    return s;
}

kiln_status kl_cuda_graph_launch(kl_cuda *c, void *exec, const char *label, void *stream,
                                 kl_cudaerr *e)
{
    static const int64_t none[3];
    *e = (kl_cudaerr){0};
    int in = kl_cuda_enter(c, e);
    if (in < 0)
        return KILN_E_DEVICE;
    kiln_status s = kl_cuda_check(c, c->api.GraphLaunch(exec, stream), "cuGraphLaunch", e);
    if (!s)
        kl_cuda_note(c, NULL, label, NULL, 0, none, 0, stream);
    kl_cuda_leave(c, in);
    return s;
}

void kl_cuda_graph_free(kl_cuda *c, void *exec)
{
    int in = exec ? kl_cuda_enter(c, NULL) : -1;
    if (in < 0)
        return;
    int mode = kl_cuda_relax(c);
    c->api.GraphExecDestroy(exec);
    kl_cuda_restore(c, mode);
    kl_cuda_leave(c, in);
}
