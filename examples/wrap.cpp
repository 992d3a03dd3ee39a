// wrap.cpp - Kiln from C++17: objects that free themselves, exceptions, std::vector.
//
//     c++ -std=c++17 -o wrap examples/wrap.cpp -Iinclude -Lbuild -lkiln
//     LD_LIBRARY_PATH=build ./wrap [cuda | sim | cpu | interp]
//
// The namespace `kiln` below is the whole wrapper: copy it and change it as your program likes.
//
// install-test: interp
#include <kiln.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kiln {

// What went wrong, with the place in the source; warnings are dropped.
class error : public std::runtime_error {
public:
    error(kiln_status s, const std::string &text) : std::runtime_error(text), status(s) {}
    kiln_status status;
};

// check([&](kiln_diags **d) { return kiln_...(..., d); })
template <class F> void check(F &&call)
{
    kiln_diags *raw = nullptr;
    const kiln_status s = call(&raw);
    const std::unique_ptr<kiln_diags, void (*)(kiln_diags *)> diags(raw, kiln_diags_free);
    if (!s)
        return;
    std::string text(kiln_diags_render(raw, 0, nullptr, 0), '\0');
    kiln_diags_render(raw, 0, text.data(), text.size() + 1);
    throw error(s, text.empty() ? kiln_status_text(s) : text);
}

template <class T> constexpr kiln_dtype dtype()
{
    using U = std::remove_const_t<T>;
    static_assert(std::is_arithmetic_v<U> && sizeof(U) <= 8 && !std::is_same_v<U, long double>,
                  "an element type that Kiln has");
    if constexpr (std::is_same_v<U, bool>)
        return KILN_BOOL;
    else if constexpr (std::is_floating_point_v<U>)
        return sizeof(U) == 4 ? KILN_F32 : KILN_F64;
    else if constexpr (std::is_signed_v<U>)
        return sizeof(U) == 1   ? KILN_I8
               : sizeof(U) == 2 ? KILN_I16
               : sizeof(U) == 4 ? KILN_I32
                                : KILN_I64;
    else
        return sizeof(U) == 1   ? KILN_U8
               : sizeof(U) == 2 ? KILN_U16
               : sizeof(U) == 4 ? KILN_U32
                                : KILN_U64;
}

// One argument: a number, a type, or an array with its shape.  Arrays are borrowed.
class arg {
public:
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    arg(const char *name, T v) : a{}
    {
        a.name = name;
        if constexpr (std::is_floating_point_v<T>) {
            a.kind = KILN_ARG_FLOAT;
            a.u.f = static_cast<double>(v);
        } else if constexpr (std::is_signed_v<T> || sizeof(T) < 8) {
            a.kind = KILN_ARG_INT;
            a.u.i = v;
        } else {
            a.kind = KILN_ARG_UINT;
            a.u.u = v;
        }
    }
    arg(const char *name, kiln_dtype t) : a{}
    {
        a.name = name;
        a.kind = KILN_ARG_TYPE;
        a.u.type = t;
    }
    // shape: none means one axis.  A const vector may be given to an array that is only read: the
    // kernel says which are, and kernel::operator() looks.
    template <class T>
    arg(const char *name, std::vector<T> &v, std::initializer_list<int64_t> s = {})
        : arg(name, v.data(), dtype<T>(), v.size(), s)
    {
    }
    template <class T>
    arg(const char *name, const std::vector<T> &v, std::initializer_list<int64_t> s = {})
        : arg(name, const_cast<T *>(v.data()), dtype<T>(), v.size(), s)
    {
        constant = true;
    }

private:
    arg(const char *name, void *data, kiln_dtype type, size_t size,
        std::initializer_list<int64_t> s)
        : a{}
    {
        int64_t n = 1;
        a.name = name;
        a.kind = KILN_ARG_TENSOR;
        a.u.tensor.data = data;
        a.u.tensor.dtype = type;
        if (s.size() > shape.size())
            throw std::invalid_argument(std::string(name) + ": too many axes");
        for (const int64_t d : s) {
            shape[static_cast<size_t>(a.u.tensor.ndim++)] = d;
            n *= d;
        }
        if (s.size() == 0) {
            a.u.tensor.ndim = 1;
            shape[0] = n = static_cast<int64_t>(size);
        }
        if (n != static_cast<int64_t>(size))
            throw std::invalid_argument(std::string(name) + ": the shape has " + std::to_string(n) +
                                        " elements, and the vector " + std::to_string(size));
    }
    friend class kernel;
    kiln_arg a;
    std::array<int64_t, 8> shape{}; // a.u.tensor.shape is set at the launch: an arg may move
    bool constant = false;
};

class kernel { // lives as long as its module
public:
    explicit kernel(kiln_kernel *raw) : k(raw) {}

    // k({{"x", x}, {"y", y}}): deduces what is left out, compiles if need be, runs.
    void operator()(std::initializer_list<arg> list) const
    {
        std::vector<kiln_arg> args;
        for (const arg &one : list) {
            if (one.constant && writes(one.a.name))
                throw std::invalid_argument(std::string(one.a.name) +
                                            " is const, and the kernel writes it");
            args.push_back(one.a);
            if (one.a.kind == KILN_ARG_TENSOR)
                args.back().u.tensor.shape = one.shape.data();
        }
        check([&](kiln_diags **d) { return kiln_launch(k, nullptr, args.data(), args.size(), d); });
    }

private:
    bool writes(std::string_view name) const
    {
        for (size_t i = 0; i < kiln_kernel_param_count(k); i++)
            if (name == kiln_kernel_param(k, i)->name)
                return kiln_kernel_param(k, i)->writes != 0;
        return false;
    }
    kiln_kernel *k;
};

class context {
public:
    explicit context(kiln_device device = KILN_DEVICE_AUTO)
    {
        kiln_options o = KILN_OPTIONS_INIT;
        check([&](kiln_diags **) { return kiln_options_from_env(&o); });
        o.device = device;
        kiln_context *raw = nullptr;
        check([&](kiln_diags **d) { return kiln_context_create(&o, &raw, d); });
        ctx.reset(raw, kiln_context_free);
    }
    kiln_device device() const { return kiln_context_device(ctx.get()); }
    void sync() const
    {
        check([&](kiln_diags **d) { return kiln_sync(ctx.get(), d); });
    }

private:
    friend class module;
    std::shared_ptr<kiln_context> ctx; // shared: a module keeps its context
};

class module {
public:
    module(const context &c, const char *name, std::string_view text) : ctx(c.ctx)
    {
        kiln_module *raw = nullptr;
        check([&](kiln_diags **d) {
            return kiln_compile(ctx.get(), name, text.data(), text.size(), &raw, d);
        });
        mod.reset(raw);
    }
    kernel operator[](const std::string &name) const
    {
        kiln_kernel *k = kiln_module_kernel(mod.get(), name.c_str());
        if (!k)
            throw std::out_of_range("there is no kernel " + name);
        return kernel(k);
    }

private:
    struct free {
        void operator()(kiln_module *m) const { kiln_module_free(m); }
    };
    std::shared_ptr<kiln_context> ctx; // before mod: it goes after it
    std::unique_ptr<kiln_module, free> mod;
};

} // namespace kiln

// ---- the example ----

static const char source[] = R"(
kernel scale(i64 rows, i64 cols, type T, T y[rows][cols], const T x[rows][cols], T by,
             constexpr i64 BLOCK = pow2ceil(cols))
    grid(rows)
{
    i64 r = program_id(0);
    y[r][0:BLOCK] = x[r][0:BLOCK] / max(abs(x[r][0:BLOCK])) * by;
}
)";

template <class T> static double try_it(const kiln::module &m)
{
    const int64_t rows = 100, cols = 77;
    std::vector<T> x(static_cast<size_t>(rows * cols)), y(x.size());
    for (size_t i = 0; i < x.size(); i++)
        x[i] = static_cast<T>(std::sin(static_cast<double>(i)));
    const std::vector<T> &in = x;
    m["scale"]({{"x", in, {rows, cols}}, {"y", y, {rows, cols}}, {"by", 3}});
    double worst = 0;
    for (size_t r = 0; r < static_cast<size_t>(rows); r++) {
        double top = 0;
        for (size_t c = 0; c < static_cast<size_t>(cols); c++)
            top = std::fmax(top, std::fabs(static_cast<double>(x[r * cols + c])));
        for (size_t c = 0; c < static_cast<size_t>(cols); c++)
            worst = std::fmax(worst, std::fabs(static_cast<double>(y[r * cols + c]) -
                                               static_cast<double>(x[r * cols + c]) / top * 3));
    }
    return worst;
}

template <class E, class F> static bool throws(F &&f)
{
    try {
        f();
    } catch (const E &e) {
        std::printf("as it should, this is refused:\n%s\n", e.what());
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    const std::string want = argc > 1 ? argv[1] : "auto";
    const std::pair<const char *, kiln_device> devices[] = {{"auto", KILN_DEVICE_AUTO},
                                                            {"cuda", KILN_DEVICE_CUDA},
                                                            {"sim", KILN_DEVICE_SIM},
                                                            {"cpu", KILN_DEVICE_CPU},
                                                            {"interp", KILN_DEVICE_INTERP}};
    try {
        const auto *dev = std::begin(devices);
        while (dev != std::end(devices) && want != dev->first)
            dev++;
        if (dev == std::end(devices))
            throw std::invalid_argument(want + " is not a device");
        kiln::module m(kiln::context(dev->second), "scale.kiln", source); // keeps the context
        const double f = try_it<float>(m), d = try_it<double>(m);
        std::printf("largest error: float %.1e, double %.1e\n", f, d);
        std::vector<float> small(10), large(20);
        const std::vector<float> fixed(10);
        const bool refused =
            throws<kiln::error>([&] {
                m["scale"]({{"x", small, {2, 5}}, {"y", large, {4, 5}}, {"by", 1}});
            }) &&
            throws<kiln::error>([&] {
                kiln::module(kiln::context(KILN_DEVICE_INTERP), "wrong.kiln",
                             "kernel wrong(i64 n, f32 y[n]) { y[0] = q; }");
            }) &&
            throws<std::invalid_argument>([&] {
                m["scale"]({{"x", small, {2, 5}}, {"y", fixed, {2, 5}}, {"by", 1}});
            }) &&
            throws<std::invalid_argument>([&] { m["scale"]({{"x", small, {2, 6}}}); });
        return f < 1e-6 && d < 1e-14 && refused ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
