// Annotations of locks for clang's -Wthread-safety; nothing to other compilers.
#pragma once

#ifdef __clang__
#define WEFT_ANALYSIS(attribute) __attribute__((attribute))
#else
#define WEFT_ANALYSIS(attribute)
#endif

// A class that is a lock, and one whose objects hold a lock as long as they live.
#define WEFT_LOCK(name) WEFT_ANALYSIS(capability(name))
#define WEFT_SCOPED_LOCK WEFT_ANALYSIS(scoped_lockable)
// A member that is used with the lock held only; the same of what a pointer points to.
#define WEFT_GUARDED_BY(lock) WEFT_ANALYSIS(guarded_by(lock))
#define WEFT_POINTEE_GUARDED_BY(lock) WEFT_ANALYSIS(pt_guarded_by(lock))
// A function that is called with the lock held, or that takes it, or releases it. A wait releases
// the lock that it is called with, on the other side of the switch.
#define WEFT_REQUIRES(...) WEFT_ANALYSIS(requires_capability(__VA_ARGS__))
#define WEFT_ACQUIRES(...) WEFT_ANALYSIS(acquire_capability(__VA_ARGS__))
#define WEFT_TRY_ACQUIRES(...) WEFT_ANALYSIS(try_acquire_capability(__VA_ARGS__))
#define WEFT_RELEASES(...) WEFT_ANALYSIS(release_capability(__VA_ARGS__))
// A function that returns this lock.
#define WEFT_RETURNS_LOCK(lock) WEFT_ANALYSIS(lock_returned(lock))
// For functions whose locks the analysis cannot follow; each says why.
#define WEFT_NOT_ANALYZED WEFT_ANALYSIS(no_thread_safety_analysis)
