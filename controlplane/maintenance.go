// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"k8s.io/klog/v2"
)

const (
	maintenanceInterval = time.Second
	maintenanceTimeout  = 30 * time.Second

	// A compaction costs time for each object. Therefore it waits for some revisions, or for some time.
	compactionRevisions = 5_000
	compactionBytes     = 8 << 20
	compactionInterval  = time.Minute

	// Free pages are used again. Defragmentation, which blocks all requests, is for a database that was much larger.
	defragmentFree = 32 << 20

	// compactRevisionKey holds the compacted revision for the watch caches of kube-apiserver, which drop the snapshots of
	// older revisions.
	compactRevisionKey = "compact_rev_key"

	nearQuota = 0.9
)

// maintenance keeps etcd's database small and its file system usable.
type maintenance struct {
	etcd     *etcdServer
	dir      string
	quota    int64
	space    *space
	warnings io.Writer

	history   history
	compacted historyPoint // the latest compaction

	// The latest time when a full database was compacted and defragmented.
	reclaimed         time.Time
	reclaimedRevision int64
}

func newMaintenance(etcd *etcdServer, dir string, o Options) *maintenance {
	m := &maintenance{etcd: etcd, dir: dir, quota: o.storageQuota(), space: &space{}, warnings: o.LogOutput}
	if m.warnings == nil {
		m.warnings = io.Discard
	}
	return m
}

// run works until ctx ends.
func (m *maintenance) run(ctx context.Context) {
	ticker := time.NewTicker(maintenanceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := m.tick(ctx, time.Now()); err != nil && ctx.Err() == nil {
			klog.Errorf("maintenance of etcd: %v", err)
		}
	}
}

func (m *maintenance) tick(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, maintenanceTimeout)
	defer cancel()
	backend := m.etcd.Server.Backend()
	revision := m.etcd.Server.KV().Rev()
	m.history.observe(now, revision, backend.SizeInUse())
	if m.compacted.time.IsZero() {
		m.compacted = m.history.points[0]
	}
	var errs []error
	if m.compactionDue(now) {
		errs = append(errs, m.compact(ctx, now, m.history.oldest()), m.defragmentIfUseful())
	}
	return errors.Join(append(errs, m.watchSpace(ctx, now, revision))...)
}

func (m *maintenance) compactionDue(now time.Time) bool {
	oldest := m.history.points[0]
	revisions := oldest.revision - m.compacted.revision
	return revisions >= compactionRevisions || oldest.written-m.compacted.written >= compactionBytes ||
		revisions > 0 && now.Sub(m.compacted.time) >= compactionInterval
}

// compact removes what was replaced or deleted before a revision.
func (m *maintenance) compact(ctx context.Context, now time.Time, revision int64) error {
	if len(m.etcd.Server.Alarms()) == 0 { // otherwise the key cannot be written; the next compaction writes it
		value := []byte(strconv.FormatInt(revision, 10))
		if _, err := m.etcd.Server.Put(ctx, &pb.PutRequest{Key: []byte(compactRevisionKey), Value: value}); err != nil {
			return fmt.Errorf("announcing the compaction to revision %d: %w", revision, err)
		}
	}
	_, err := m.etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		return fmt.Errorf("compacting to revision %d: %w", revision, err)
	}
	m.compacted = historyPoint{time: now, revision: revision, written: m.history.points[0].written}
	m.history.compacted(m.etcd.Server.Backend().SizeInUse())
	return nil
}

func (m *maintenance) defragmentIfUseful() error {
	backend := m.etcd.Server.Backend()
	size, inUse := backend.Size(), backend.SizeInUse()
	if size-inUse < defragmentFree || inUse > size/2 {
		return nil
	}
	// The copy needs as much space as it will have.
	if free, err := freeBytes(m.dir); err != nil || free < inUse+spaceReserve {
		return err
	}
	return m.etcd.Server.Defragment()
}
