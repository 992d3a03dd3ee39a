// softmax.cc - the same from C++, with the shape in a vector and errors as exceptions.
//
//     cc -std=c11 -O2 -c softmax.c
//     c++ -std=c++17 softmax.o examples/aot/softmax.cc -I. -o example
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "softmax.h"

static void check(int status)
{
    if (status)
        throw std::runtime_error(std::string(softmax_strerror(status)) + ": " + softmax_detail());
}

int main()
try {
    softmax_lib *p = nullptr;
    check(softmax_load(&p, SOFTMAX_CPU));
    const std::unique_ptr<softmax_lib, void (*)(softmax_lib *)> lib(p, softmax_unload);
    const std::vector<int64_t> shape{2, 3};
    std::vector<float> x{0, 0, 0, 1, 2, 3}, y(6);
    const kiln_aot_tensor tx{x.data(), KILN_AOT_F32, 2, shape.data(), nullptr, 0};
    const kiln_aot_tensor ty{y.data(), KILN_AOT_F32, 2, shape.data(), nullptr, 0};
    check(softmax_f32(lib.get(), nullptr, &ty, &tx));
    for (size_t i = 0; i < y.size(); i++)
        std::cout << y[i] << (i % 3 == 2 ? '\n' : ' ');
} catch (const std::exception &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
