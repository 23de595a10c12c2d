// Functions that no source file of Deputy may call. Force-included before every file below src/ in debug
// builds and in the clang lanes; tests are free. Each prototype below repeats libc's and adds a reason, so a
// use is a compile error that says what to use instead. `./dev check` proves for every entry that a use
// fails.
#ifndef DEPUTY_BASE_BANNED_H
#define DEPUTY_BASE_BANNED_H

#include <alloca.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#undef alloca

#define DEP_BANNED(why) __attribute__((unavailable(why)))

// Unbounded or silently cutting writes.
extern char *strcpy(char *, const char *) DEP_BANNED("use str and buf");
extern char *stpcpy(char *, const char *) DEP_BANNED("use str and buf");
extern char *strcat(char *, const char *) DEP_BANNED("use str and buf");
extern char *strncpy(char *, const char *, size_t) DEP_BANNED("use str and buf");
extern char *strncat(char *, const char *, size_t) DEP_BANNED("use str and buf");
extern int sprintf(char *, const char *, ...) DEP_BANNED("use buf or snprintf");
extern int vsprintf(char *, const char *, va_list) DEP_BANNED("use buf or vsnprintf");
extern char *gets(char *) DEP_BANNED("use the file functions");
extern void *alloca(size_t) DEP_BANNED("use an arena");

// Hidden state.
extern char *strtok(char *, const char *) DEP_BANNED("use str_cut");
extern int rand(void) DEP_BANNED("use the randomness of dep_sys");
extern int setenv(const char *, const char *, int) DEP_BANNED("pass an environment to the child");
extern int putenv(char *) DEP_BANNED("pass an environment to the child");
extern int unsetenv(const char *) DEP_BANNED("pass an environment to the child");

// No way to report a bad number.
extern int atoi(const char *) DEP_BANNED("use the number functions of str");
extern long atol(const char *) DEP_BANNED("use the number functions of str");
extern long long atoll(const char *) DEP_BANNED("use the number functions of str");
extern double atof(const char *) DEP_BANNED("use the number functions of str");

// A shell, or a name that somebody else can take first.
extern int system(const char *) DEP_BANNED("use spawn");
extern FILE *popen(const char *, const char *) DEP_BANNED("use spawn");
extern char *tmpnam(char *) DEP_BANNED("use the atomic write of file");
extern char *tempnam(const char *, const char *) DEP_BANNED("use the atomic write of file");
extern char *mktemp(char *) DEP_BANNED("use the atomic write of file");

#endif
