// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	megabyte = 1_000_000

	// readinessLimit is generous, because a start with much data takes longer.
	readinessLimit = 5 * time.Minute
)

// process is a running control plane.
type process struct {
	Kubeconfig string
	Dir        string
	PID        int

	command *exec.Cmd
	stdin   io.Closer
	took    time.Duration
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// start runs the control plane with its data in dir.
func (s settings) start(ctx context.Context, dir string) (*process, error) {
	arguments := append([]string{"--output", "json", "--stop-with-stdin", "--dir", dir}, s.extraArguments()...)
	p := &process{command: exec.CommandContext(ctx, s.binary, arguments...)}
	p.command.Stderr = os.Stderr
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	overdue := time.AfterFunc(readinessLimit, func() { _ = p.command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	overdue.Stop()
	if err == nil {
		err = json.Unmarshal(line, p)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the control plane is not ready: %w", err), p.stop())
	}
	p.took = time.Since(begin)
	return p, p.connect()
}

func (p *process) connect() (err error) {
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return err
	}
	p.config.QPS = -1
	binary := rest.CopyConfig(p.config)
	binary.ContentType = runtime.ContentTypeProtobuf // costs less CPU time, here and there
	if p.client, err = kubernetes.NewForConfig(binary); err != nil {
		return err
	}
	p.dynamic, err = dynamic.NewForConfig(p.config)
	return err
}

func (p *process) stop() error {
	_ = p.stdin.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("the control plane: %w", err)
	}
	return nil
}

// usage is what the process occupies.
type usage struct {
	resident  int64 // all of its resident memory
	anonymous int64 // without pages of files, such as the pages of etcd's database
	disk      int64 // allocated blocks of the data directory
	database  int64 // the part that is etcd's database
	cpu       time.Duration
}

func (u usage) String() string {
	return fmt.Sprintf("resident %s (without pages of files %s), disk %s (database %s), CPU %.0f s",
		mb(u.resident), mb(u.anonymous), mb(u.disk), mb(u.database), u.cpu.Seconds())
}

func mb(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/megabyte) }

func (p *process) usage() (usage, error) {
	var u usage
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return u, fmt.Errorf("memory of the control plane: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kibibytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.resident = kibibytes << 10
		case "RssAnon":
			u.anonymous = kibibytes << 10
		}
	}
	if u.cpu, err = cpuTime(p.PID); err != nil {
		return u, err
	}
	err = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		size, err := allocated(path)
		if err != nil {
			return err
		}
		u.disk += size
		if entry.Name() == "db" {
			u.database += size
		}
		return nil
	})
	return u, err
}

// cpuTime returns the CPU time that a process has used, in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of the control plane: %w", err)
	}
	_, afterName, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(afterName)
	const userField, systemField, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= systemField {
		return 0, fmt.Errorf("CPU time of the control plane: unexpected content %q", stat)
	}
	user, userErr := strconv.Atoi(fields[userField])
	system, systemErr := strconv.Atoi(fields[systemField])
	return time.Duration(user+system) * tick, errors.Join(userErr, systemErr)
}
