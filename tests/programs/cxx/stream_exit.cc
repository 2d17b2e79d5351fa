// Static objects, streams still unflushed, std::exit from a function; uncaught exceptions are in
// terminate.cc.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

struct Last { std::string name; explicit Last(std::string n) : name(std::move(n)) {} ~Last() { std::cout << "end " << name << "\n"; } };
static Last one("one");
static void leave() { static Last two("two"); std::cout << "leaving\n"; std::exit(5); }

int main() {
    std::ifstream missing("/no/such/file");
    std::cout << missing.good() << ' ' << 3.25 << ' ' << std::hex << 255 << "\n";
    std::string word;
    while (std::cin >> word) std::cout << word;
    leave();
}
