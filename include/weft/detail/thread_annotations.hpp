// Defines lock annotations for clang's -Wthread-safety; with other compilers they are empty.
#pragma once

#ifdef __clang__
#define WEFT_ANALYSIS(attribute) __attribute__((attribute))
#else
#define WEFT_ANALYSIS(attribute)
#endif

// WEFT_LOCK marks a lock class; WEFT_SCOPED_LOCK marks a guard class like std::lock_guard.
#define WEFT_LOCK(name) WEFT_ANALYSIS(capability(name))
#define WEFT_SCOPED_LOCK WEFT_ANALYSIS(scoped_lockable)
// Marks a member that may be accessed only while the lock is held. The second form marks the target
// of a pointer.
#define WEFT_GUARDED_BY(lock) WEFT_ANALYSIS(guarded_by(lock))
#define WEFT_POINTEE_GUARDED_BY(lock) WEFT_ANALYSIS(pt_guarded_by(lock))
// Mark a function that requires, acquires or releases a lock. A function that parks its caller is
// marked as releasing the lock, although it does so only after the switch to another fiber.
#define WEFT_REQUIRES(...) WEFT_ANALYSIS(requires_capability(__VA_ARGS__))
#define WEFT_ACQUIRES(...) WEFT_ANALYSIS(acquire_capability(__VA_ARGS__))
#define WEFT_TRY_ACQUIRES(...) WEFT_ANALYSIS(try_acquire_capability(__VA_ARGS__))
#define WEFT_RELEASES(...) WEFT_ANALYSIS(release_capability(__VA_ARGS__))
// Marks a function that returns the lock `lock`.
#define WEFT_RETURNS_LOCK(lock) WEFT_ANALYSIS(lock_returned(lock))
// Marks functions whose locks the analysis cannot follow; most uses state the reason.
#define WEFT_NOT_ANALYZED WEFT_ANALYSIS(no_thread_safety_analysis)
