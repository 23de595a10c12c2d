// floor: what the machine takes for a process that does nothing: the measure beside start-up.
int main(void) {
    return 0;
}
