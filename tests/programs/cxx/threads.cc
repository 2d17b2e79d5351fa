// std::thread, mutex, condition_variable, async, atomic, call_once, thread_local, shared_ptr
// between threads.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static thread_local std::vector<int> local;
static std::once_flag once;

int main() {
    std::mutex m;
    std::shared_mutex sm;
    std::condition_variable cv;
    std::atomic<long> a{0};
    std::atomic<bool> flag{false};
    long plain = 0, guarded = 0, onces = 0;
    int ready = 0;
    auto shared = std::make_shared<int>(41);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t, shared] {
            std::call_once(once, [&] { onces++; });
            for (int i = 0; i < 500; i++) {
                local.push_back(i);
                a.fetch_add(1, std::memory_order_relaxed);
                std::lock_guard<std::mutex> g(m);
                plain += *shared + t * 0;
            }
            { std::unique_lock<std::shared_mutex> g(sm); guarded += static_cast<long>(local.size()); }
            { std::shared_lock<std::shared_mutex> g(sm); a += guarded > 0; }
            std::unique_lock<std::mutex> g(m);
            ready++;
            cv.notify_all();
            cv.wait(g, [&] { return ready == 4; });
        });
    for (auto &t : threads) t.join();
    auto f = std::async(std::launch::async, [] { long s = 0; for (int i = 0; i < 1000; i++) s += i; return s; });
    std::promise<int> p;
    auto pf = p.get_future();
    std::thread setter([&] { flag.store(true, std::memory_order_release); p.set_value(6); });
    while (!flag.load(std::memory_order_acquire)) std::this_thread::yield();
    setter.join();
    int thrown = 0;
    auto e = std::async(std::launch::async, []() -> int { throw 5; });
    try { e.get(); } catch (int n) { thrown = n; }
    std::printf("%ld %ld %ld %ld %ld %d %d %ld\n", a.load(), plain, guarded, onces, f.get(), pf.get(), thrown, shared.use_count());
    return 0;
}
