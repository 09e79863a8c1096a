// SPDX-License-Identifier: Apache-2.0

package converge

// oracleMeanings tell what an oracle wants, to somebody who has never heard of it.
var oracleMeanings = map[Oracle]string{
	scenarioItself: "The scenario has to work when nothing goes wrong.",
	Quiescence:     "Reconciles have to come to an end once faults have stopped.",
	EndState:       "When all is quiet, the state has to be the desired one, or that of the run without faults.",
	Idempotence:    "Reconciling again, with nothing to do, must not write anything.",
	Duplicates:     "Nothing may be created or deleted more often than without faults, unless a fault explains it.",
	Deletion:       "What is deleted has to go, with all that belongs to it, also outside of the cluster.",
	Status:         "A status has to tell the truth about the generation that it is of.",
	Errors:         "A reconciler must not panic, or give up because of what will pass.",
	SharedObjects:  "Objects of the cache must not be changed.",
	Leaks:          "Goroutines have to end with the process.",
	Advice:         "This does no harm yet, but it is dangerous.",
}

// faultMeanings tell what a fault is.
var faultMeanings = map[Fault]string{
	CrashBefore:     "the process ends before the write has an effect",
	CrashAfter:      "the process ends after the write has had its effect, and before the answer",
	TimeoutApplied:  "the request times out, although it has an effect",
	TimeoutLost:     "the request times out, without an effect",
	TooManyRequests: "the API server answers 429",
	ServerError:     "the API server answers 500",
	Conflict:        "somebody else changes the object just before",
	Exists:          "the same object is there already just before, as if an earlier attempt had got through",
	Taken: "somebody else creates an object of this name with another controller just before, and deletes it " +
		"a moment later",
	TakenUnnoticed: "as taken, and nothing tells the reconciler when the name is free again",
	Deleted:        "somebody else deletes the object just before",
	Recreated:      "somebody else deletes the object just before, and creates it again",
	HandOver: "the process ends during the write, which has its effect after the first reconcile of the next " +
		"process",
	LagRead:      "the cache misses this event, and later ones, until it has been read once",
	LagReconcile: "the cache misses this event, and later ones, until the end of a reconcile",
	LagLong:      "the cache misses this event, and later ones, until all else is quiet, or for 100 ms",
	Relist:       "the cache misses this event, and later ones, until it lists everything anew",
	Resync:       "the cache repeats everything as updates that change nothing",
	ListOrder:    "lists come in another order each time",
	Stale:        "the process begins with a cache that has not seen the last events",
	Restart:      "the process ends while no reconcile goes on",
	Meanwhile:    "users take their next steps in the middle of the reconcile",
	Overtaken:    "another reconcile comes to its end before the request is answered",
	Late:         "an actor acts only when all else is quiet",
	Early:        "an actor acts at once, in the middle of the reconcile",
	ChildDeleted: "somebody deletes an object of the reconciler when all is quiet",
	Flap:         "a workload is unavailable for a while",
	Drift:        "somebody changes an object of the reconciler when all is quiet",
}
