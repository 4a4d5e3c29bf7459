/* Under AddressSanitizer a new device of lavapipe costs 15 ms and 3700 page faults, more than what is done with it. So
 * three of four instances and devices that gm gives back, by chance, lie here until gm makes one like them. gm sees no
 * difference: it makes and destroys each of them, and that is counted. Other builds keep none. For one thread. */
#ifndef GM_TESTS_FAULT_KEPT_DEVICE_H
#define GM_TESTS_FAULT_KEPT_DEVICE_H

/* The function that stands for an entry of the driver, which it calls. Every other entry stays. */
void *kept_device_entry(const char *symbol, void *real);

#endif
