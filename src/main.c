// Entry point of the program.
#include <stdio.h>

int main(void) {
    puts("deputy 0.1.0");
    return 0;
}
