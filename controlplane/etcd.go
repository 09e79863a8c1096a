// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// etcdMemberURL is the peer URL of the only member. No server listens there. It must stay the same across restarts.
const etcdMemberURL = "http://127.0.0.1:2380"

const (
	defaultStorageQuota = 4 << 30

	// minStorageQuota leaves space for the objects that every cluster has.
	minStorageQuota = 16 << 20

	// etcd preallocates two segments of its log, and keeps at least etcdWALFiles.
	etcdWALSegment = 4 << 20
	etcdWALFiles   = 2

	// A snapshot releases older segments of the log. There is no second member that would read the log.
	etcdSnapshotEntries = 5_000
	etcdCatchUpEntries  = 100

	// etcdGiveUp limits the wait for an aborted start, which takes well under a second.
	etcdGiveUp = 2 * time.Second
)

// etcdServer is a running etcd.
type etcdServer struct {
	*embed.Etcd
	panics <-chan error
}

// startEtcd runs etcd on a unix socket in a directory that only its owner can enter. It needs no port, and no other
// user of the machine can bypass the API server to read the cluster's secrets.
func startEtcd(ctx context.Context, dataDir, socket string, log *componentLog, o Options) (*etcdServer, error) {
	logger, panics := log.etcdLogger(o.Verbosity)
	cfg, err := etcdConfig(dataDir, socket, logger, o.storageQuota())
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	type result struct {
		server *embed.Etcd
		err    error
	}
	results := make(chan result, 1)
	go func() {
		// etcd panics when it aborts early because of unreadable data.
		defer func() {
			if panicked := recover(); panicked != nil {
				results <- result{err: fmt.Errorf("%v", panicked)}
			}
		}()
		server, err := embed.StartEtcd(cfg)
		results <- result{server, err}
	}()
	var server *embed.Etcd
	select {
	case started := <-results:
		if started.err != nil {
			return nil, unusable(dataDir, started.err)
		}
		server = started.server
	case err := <-panics:
		return nil, unusable(dataDir, err)
	case <-ctx.Done():
		// etcd creates directories while it starts, and would create them again after they were removed.
		select {
		case late := <-results:
			if late.err == nil {
				late.server.Close()
			}
		case <-time.After(etcdGiveUp):
		}
		return nil, fmt.Errorf("etcd: %w", context.Cause(ctx))
	}
	select {
	case <-server.Server.ReadyNotify():
		return &etcdServer{Etcd: server, panics: panics}, nil
	case err = <-server.Err():
	case err = <-panics:
	case <-server.Server.StopNotify():
		err = errors.New("stopped while starting")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, fmt.Errorf("etcd: %w", err)
}

func etcdConfig(dataDir, socket string, logger *zap.Logger, quota int64) (*embed.Config, error) {
	member, err := url.Parse(etcdMemberURL)
	if err != nil {
		return nil, err
	}
	client := url.URL{Scheme: "unix", Path: socket}
	cfg := embed.NewConfig()
	cfg.Dir = dataDir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{*member}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	// The data must survive a restart of the process, but not of the machine.
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = quota
	cfg.SnapshotCount = etcdSnapshotEntries
	cfg.SnapshotCatchUpEntries = etcdCatchUpEntries
	cfg.MaxWalFiles = etcdWALFiles
	wal.SegmentSizeBytes = etcdWALSegment
	// A single member waits for no other members.
	cfg.TickMs = 10
	cfg.ElectionMs = 100
	return cfg, nil
}

func unusable(dataDir string, err error) error {
	return fmt.Errorf("etcd: cannot use the data in %s (remove it to start with empty data): %w", dataDir, err)
}

// stored reports whether there is a key with a prefix. It only looks into the index of keys.
func (e *etcdServer) stored(ctx context.Context, prefix string) (bool, error) {
	found, err := e.Server.Range(ctx, &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), CountOnly: true, Serializable: true,
	})
	return err == nil && found.Count > 0, err
}

// watch waits until etcd ends and returns the reason.
func (e *etcdServer) watch() error {
	select {
	case err := <-e.Err():
		return fmt.Errorf("etcd: %w", err)
	case err := <-e.panics:
		return fmt.Errorf("etcd: %w", err)
	case <-e.Server.StopNotify():
		return errors.New("etcd: ended unexpectedly")
	}
}
