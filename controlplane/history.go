// SPDX-License-Identifier: Apache-2.0

package controlplane

import "time"

// Limits of the history of changes that etcd keeps: what is older than the first of them that is reached is compacted.
// A watch that starts before that gets the error "410 Gone" and its client lists again. kube-apiserver keeps five to
// ten minutes of history, without other limits.
const (
	historyAge       = 5 * time.Minute
	historyRevisions = 50_000
	historyBytes     = 64 << 20
)

// historyPoint is the state of etcd at one time.
type historyPoint struct {
	time     time.Time
	revision int64
	written  int64 // bytes written to the database until then
}

// history decides which revisions of etcd can be compacted. It is not safe for concurrent use.
type history struct {
	points []historyPoint // in order of time
	inUse  int64          // size of the database at the latest point
}

// observe records the state of etcd: its revision and the size of its database without free pages.
func (h *history) observe(now time.Time, revision, inUse int64) {
	latest := historyPoint{time: now, revision: revision}
	if len(h.points) > 0 {
		latest.written = h.points[len(h.points)-1].written + max(0, inUse-h.inUse)
	}
	h.inUse = inUse
	h.points = append(h.points, latest)
	first := 0
	for first < len(h.points)-1 && h.points[first].exceeds(latest) {
		first++
	}
	h.points = append(h.points[:0], h.points[first:]...)
}

func (p historyPoint) exceeds(latest historyPoint) bool {
	return latest.time.Sub(p.time) > historyAge || latest.revision-p.revision > historyRevisions ||
		latest.written-p.written > historyBytes
}

// oldest returns the first revision to keep.
func (h *history) oldest() int64 {
	if len(h.points) == 0 {
		return 0
	}
	return h.points[0].revision
}

// compacted records that the size of the database has changed because of a compaction.
func (h *history) compacted(inUse int64) { h.inUse = inUse }
