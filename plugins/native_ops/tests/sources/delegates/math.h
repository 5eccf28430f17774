// Conv2D and Mean on plain memory, for the delegates beside this file.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "tflite/builtin_op_data.h"

struct ConvStep {
  TfLiteConvParams params{};
  void Run(const int* xd, const float* x, const int* wd, const float* w, const float* bias, const int* yd, float* y) const {
    const int top = Before(xd[1], wd[1], params.stride_height, yd[1]), left = Before(xd[2], wd[2], params.stride_width, yd[2]);
    float low = -std::numeric_limits<float>::infinity(), high = -low;
    if (params.activation == kTfLiteActRelu) low = 0;
    if (params.activation == kTfLiteActReluN1To1) low = -1, high = 1;
    if (params.activation == kTfLiteActRelu6) low = 0, high = 6;
    for (int n = 0; n < yd[0]; ++n)
      for (int i = 0; i < yd[1]; ++i)
        for (int j = 0; j < yd[2]; ++j)
          for (int c = 0; c < yd[3]; ++c) {
            double sum = bias[c];
            for (int a = 0; a < wd[1]; ++a)
              for (int b = 0; b < wd[2]; ++b) {
                const int row = i * params.stride_height - top + a, column = j * params.stride_width - left + b;
                if (row < 0 || column < 0 || row >= xd[1] || column >= xd[2]) continue;
                const float* px = x + (static_cast<size_t>(n * xd[1] + row) * xd[2] + column) * xd[3];
                const float* pw = w + (static_cast<size_t>(c * wd[1] + a) * wd[2] + b) * wd[3];
                for (int d = 0; d < xd[3]; ++d) sum += static_cast<double>(px[d]) * pw[d];
              }
            *y++ = std::min(std::max(static_cast<float>(sum), low), high);
          }
  }
  int Out(int size, int taps, int stride) const {
    return params.padding == kTfLitePaddingSame ? (size + stride - 1) / stride : (size - taps + stride) / stride;
  }

 private:
  int Before(int size, int taps, int stride, int out) const {
    const int all = (out - 1) * stride + taps - size;
    return params.padding == kTfLitePaddingSame && all > 0 ? all / 2 : 0;
  }
};

struct MeanStep {
  std::vector<bool> gone;  // by axis
  void Axes(int rank, const int* axes, int count) {
    gone.assign(rank, false);
    for (int i = 0; i < count; ++i) gone[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
  }
  void Run(const int* xd, const float* x, float* y) const {
    const int rank = static_cast<int>(gone.size());
    std::vector<size_t> stride(rank, 0);  // in the output
    size_t all = 1, out = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (!gone[i]) stride[i] = out, out *= xd[i];
      all *= xd[i];
    }
    std::vector<double> sums(out, 0.0);
    std::vector<int> at(rank, 0);
    for (size_t k = 0; k < all; ++k) {
      size_t place = 0;
      for (int i = 0; i < rank; ++i) place += stride[i] * at[i];
      sums[place] += x[k];
      for (int i = rank - 1; i >= 0 && ++at[i] == xd[i]; --i) at[i] = 0;
    }
    for (size_t k = 0; k < out; ++k) y[k] = static_cast<float>(sums[k] / (static_cast<double>(all) / out));
  }
};
