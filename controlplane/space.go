// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

const (
	// spaceReserve stays free on the file system, for deletions and for etcd itself, which cannot continue without space.
	spaceReserve = 32 << 20

	// spaceRecovered must be free before writes are accepted again.
	spaceRecovered = 40 << 20

	// reclaimInterval limits how often a full database is compacted and defragmented, which blocks all requests.
	reclaimInterval = 5 * time.Second
)

// space reports why data cannot be written. It is safe for concurrent use.
type space struct{ full atomic.Pointer[string] }

// problem returns why nothing can be written, or "".
func (s *space) problem() string {
	if reason := s.full.Load(); reason != nil {
		return *reason
	}
	return ""
}

// protect rejects requests that need space while there is none. Reads and deletions are always possible.
func (s *space) protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem := s.problem()
		info, ok := request.RequestInfoFrom(r.Context())
		if problem == "" || !ok || !info.IsResourceRequest || !needsSpace(info) {
			handler.ServeHTTP(w, r)
			return
		}
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
			Message: problem,
		}}
		gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, gv, w, r)
	})
}

// needsSpace reports whether a request writes. Reviews and the like are not stored.
func needsSpace(info *request.RequestInfo) bool {
	switch info.APIGroup {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	switch info.Verb {
	case "update", "patch":
		return true
	case "create":
		return info.Subresource == "" || info.Subresource == "binding" || info.Subresource == "eviction"
	}
	return false
}

// watchSpace updates the state of the file system and the database. It compacts and defragments a full database.
func (m *maintenance) watchSpace(ctx context.Context, now time.Time, revision int64) error {
	var err error
	// Only deletions can make a difference after the first time.
	if m.databaseFull() && revision != m.reclaimedRevision && now.Sub(m.reclaimed) >= reclaimInterval {
		err = m.reclaim(ctx, now, revision)
		m.reclaimed, m.reclaimedRevision = now, m.etcd.Server.KV().Rev()
	}
	problem, spaceErr := m.spaceProblem()
	err = errors.Join(err, spaceErr)
	before := m.space.problem()
	switch {
	case problem != "" && before == "":
		m.space.full.Store(&problem)
		_, _ = fmt.Fprintf(m.warnings, "warning: %s\n", problem)
	case problem == "" && before != "" && err == nil:
		m.space.full.Store(nil)
		_, _ = fmt.Fprintf(m.warnings, "there is space again in %s: writes are accepted\n", m.dir)
	}
	return err
}

// spaceProblem returns why data cannot be written, or "".
func (m *maintenance) spaceProblem() (string, error) {
	if m.databaseFull() {
		return fmt.Sprintf("the control plane's storage is full: the database has %s of at most %s; delete objects, or "+
			"start it with a larger storage quota", humanize.IBytes(uint64(m.etcd.Server.Backend().SizeInUse())),
			humanize.IBytes(uint64(m.quota))), nil
	}
	free, err := freeBytes(m.dir)
	if err != nil {
		return "", err
	}
	limit := int64(spaceReserve)
	if m.space.problem() != "" {
		limit = spaceRecovered
	}
	if free < limit {
		return diskFull(m.dir, free, limit), nil
	}
	return "", nil
}

func diskFull(dir string, free, limit int64) string {
	return fmt.Sprintf("the control plane's disk is full: %s free in %s, at least %s are required; remove files there",
		humanize.IBytes(uint64(free)), dir, humanize.IBytes(uint64(limit)))
}

// databaseFull reports whether etcd rejects writes because of its quota, or soon would.
func (m *maintenance) databaseFull() bool {
	return len(m.etcd.Server.Alarms()) > 0 || m.nearQuota()
}

func (m *maintenance) nearQuota() bool {
	return float64(m.etcd.Server.Backend().Size()) > nearQuota*float64(m.quota)
}

// reclaim removes all history and free pages, and makes etcd accept writes again if that suffices.
func (m *maintenance) reclaim(ctx context.Context, now time.Time, revision int64) error {
	if err := m.compact(ctx, now, revision); err != nil {
		return err
	}
	if err := m.etcd.Server.Defragment(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	if m.nearQuota() {
		return nil
	}
	var err error
	for _, alarm := range m.etcd.Server.Alarms() {
		_, disarmErr := m.etcd.Server.Alarm(ctx, &pb.AlarmRequest{
			MemberID: alarm.MemberID, Action: pb.AlarmRequest_DEACTIVATE, Alarm: alarm.Alarm,
		})
		err = errors.Join(err, disarmErr)
	}
	return err
}

// checkSpace returns an error if there is too little space to start.
func checkSpace(dir string) error {
	free, err := freeBytes(dir)
	if err == nil && free < spaceReserve {
		return errors.New(diskFull(dir, free, spaceReserve))
	}
	return err
}

// freeBytes returns what an ordinary user can still write to the file system of dir.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // the types differ between systems
}
