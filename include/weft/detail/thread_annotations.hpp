// Defines annotations of locks for clang's -Wthread-safety; with other compilers they are empty.
#pragma once

#ifdef __clang__
#define WEFT_ANALYSIS(attribute) __attribute__((attribute))
#else
#define WEFT_ANALYSIS(attribute)
#endif

// Mark a class that is a lock, and a class whose objects hold a lock until their destruction.
#define WEFT_LOCK(name) WEFT_ANALYSIS(capability(name))
#define WEFT_SCOPED_LOCK WEFT_ANALYSIS(scoped_lockable)
// Marks a member that code uses only while it holds the lock. The second form marks the target of a
// pointer.
#define WEFT_GUARDED_BY(lock) WEFT_ANALYSIS(guarded_by(lock))
#define WEFT_POINTEE_GUARDED_BY(lock) WEFT_ANALYSIS(pt_guarded_by(lock))
// Mark a function that requires, acquires or releases a lock. A call that parks counts as a
// release, although the lock is released only after the switch.
#define WEFT_REQUIRES(...) WEFT_ANALYSIS(requires_capability(__VA_ARGS__))
#define WEFT_ACQUIRES(...) WEFT_ANALYSIS(acquire_capability(__VA_ARGS__))
#define WEFT_TRY_ACQUIRES(...) WEFT_ANALYSIS(try_acquire_capability(__VA_ARGS__))
#define WEFT_RELEASES(...) WEFT_ANALYSIS(release_capability(__VA_ARGS__))
// Marks a function that returns the lock `lock`.
#define WEFT_RETURNS_LOCK(lock) WEFT_ANALYSIS(lock_returned(lock))
// Marks functions whose locks the analysis cannot follow; each use states the reason.
#define WEFT_NOT_ANALYZED WEFT_ANALYSIS(no_thread_safety_analysis)
