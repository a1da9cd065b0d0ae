// SPDX-License-Identifier: GPL-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const slice = "kubepods-burstable-pod12.slice"

// With this variable the program of the tests is mqfair-nri.
const asPlugin = "MQFAIR_NRI_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if socket := os.Getenv(asPlugin); socket != "" {
		if err := run(socket, "51", os.TempDir()); err != nil {
			complain("%v", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// node has the cgroups of a node, a runtime's side of NRI, and the plugin, which speak over a socket.
type node struct {
	*testing.T
	cgroups      string
	socket       string
	runtime      *adaptation.Adaptation
	synchronized chan []*api.ContainerUpdate
	complaints   []string
}

// newNode starts the plugin while @pods and @containers are there already.
func newNode(t *testing.T, pods []*api.PodSandbox, containers []*api.Container) (*node, []*api.ContainerUpdate) {
	n := &node{T: t, cgroups: t.TempDir()}
	n.makeCgroup("kubepods.slice/kubepods-burstable.slice/" + slice)
	n.socket = filepath.Join(t.TempDir(), "nri.sock")
	n.synchronized = make(chan []*api.ContainerUpdate, 1)
	sync := func(ctx context.Context, call adaptation.SyncCB) error {
		updates, err := call(ctx, pods, containers)
		n.synchronized <- updates
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	var err error
	n.runtime, err = adaptation.New("test", "1", sync, update, adaptation.WithSocketPath(n.socket),
		adaptation.WithPluginPath(t.TempDir()), adaptation.WithPluginConfigPath(t.TempDir()))
	n.must(err)
	n.must(n.runtime.Start())
	t.Cleanup(n.runtime.Stop)
	complain := func(format string, values ...any) {
		n.complaints = append(n.complaints, fmt.Sprintf(format, values...))
	}
	connection, err := stub.New(&plugin{cgroups: n.cgroups, complain: complain},
		stub.WithPluginName("mqfair"), stub.WithPluginIdx("50"), stub.WithSocketPath(n.socket),
		stub.WithOnClose(func() {}))
	n.must(err)
	n.must(connection.Start(context.Background()))
	t.Cleanup(connection.Stop)
	return n, <-n.synchronized
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// makeCgroup makes a cgroup and those above it, with files of weights as the kernel has them.
func (n *node) makeCgroup(path string) {
	n.must(os.MkdirAll(filepath.Join(n.cgroups, path), 0o755))
	for ; path != "."; path = filepath.Dir(path) {
		n.must(os.WriteFile(filepath.Join(n.cgroups, path, weightFile), []byte("default 100\n"), 0o644))
	}
}

func (n *node) weightOf(path string) string {
	text, err := os.ReadFile(filepath.Join(n.cgroups, path, weightFile))
	n.must(err)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func pod(annotations map[string]string) *api.PodSandbox {
	return &api.PodSandbox{Id: "12", Name: "web", Namespace: "shop", Annotations: annotations,
		Linux: &api.LinuxPodSandbox{CgroupParent: slice}}
}

func container(name string) *api.Container {
	return &api.Container{Id: name + "1", PodSandboxId: "12", Name: name}
}

// unified returns the files that the runtime is to write for a new container.
func (n *node) unified(pod *api.PodSandbox, name string) map[string]string {
	n.Helper()
	request := &api.CreateContainerRequest{Pod: pod, Container: container(name)}
	response, err := n.runtime.CreateContainer(context.Background(), request)
	n.must(err)
	return response.GetAdjust().GetLinux().GetResources().GetUnified()
}

func TestAContainerGetsTheWeightOfItsName(t *testing.T) {
	n, _ := newNode(t, nil, nil)
	web := pod(map[string]string{"weight.mqfair/db": "900"})
	if got := n.unified(web, "db"); len(got) != 1 || got["io.weight"] != "default 900" {
		t.Error(got)
	}
	if got := n.unified(web, "cache"); len(got) != 0 {
		t.Error(got)
	}
}

func TestAPodGetsItsWeight(t *testing.T) {
	n, _ := newNode(t, nil, nil)
	event := &api.StateChangeEvent{Event: api.Event_RUN_POD_SANDBOX, Pod: pod(map[string]string{"mqfair/pod-weight": "500"})}
	n.must(n.runtime.RunPodSandbox(context.Background(), event))
	if got := n.weightOf("kubepods.slice/kubepods-burstable.slice/" + slice); got != "default 500" {
		t.Error(got)
	}
	if got := n.weightOf("kubepods.slice"); got != "default 100" {
		t.Error(got)
	}
}

func TestPodsAndContainersFromBeforeGetTheirWeights(t *testing.T) {
	web := pod(map[string]string{"weight.mqfair/db": "900", "mqfair/pod-weight": "500"})
	n, updates := newNode(t, []*api.PodSandbox{web}, []*api.Container{container("db"), container("cache")})
	if len(updates) != 1 || updates[0].GetContainerId() != "db1" ||
		updates[0].GetLinux().GetResources().GetUnified()["io.weight"] != "default 900" {
		t.Error(updates)
	}
	if got := n.weightOf("kubepods.slice/kubepods-burstable.slice/" + slice); got != "default 500" {
		t.Error(got)
	}
}

func TestAWrongAnnotationIsNamedAndStopsNothing(t *testing.T) {
	n, _ := newNode(t, nil, nil)
	for _, value := range []string{"0", "10001", "heavy", ""} {
		n.complaints = nil
		if got := n.unified(pod(map[string]string{"weight.mqfair/db": value}), "db"); len(got) != 0 {
			t.Error(got)
		}
		want := fmt.Sprintf("pod shop/web: annotation weight.mqfair/db: %q is no weight: use a number from 1 to 10000", value)
		if len(n.complaints) != 1 || n.complaints[0] != want {
			t.Error(n.complaints)
		}
	}
}

func TestAKernelWithoutWeightsStillStartsTheContainer(t *testing.T) {
	n, _ := newNode(t, nil, nil)
	n.cgroups = t.TempDir()
	bare := &plugin{cgroups: n.cgroups}
	line, err := bare.setting(pod(map[string]string{"weight.mqfair/db": "900"}), container("db"))
	if line != "" || err == nil || !strings.Contains(err.Error(), "BLK_CGROUP_IOCOST") {
		t.Error(line, err)
	}
}

func TestTheCgroupOfAPod(t *testing.T) {
	for parent, want := range map[string]string{
		slice:                      "kubepods.slice/kubepods-burstable.slice/" + slice,
		"kubepods-pod1_2.slice":    "kubepods.slice/kubepods-pod1_2.slice",
		"system.slice":             "system.slice",
		"/kubepods/burstable/pod1": "/kubepods/burstable/pod1",
	} {
		if got := podCgroup(parent); got != want {
			t.Errorf("%s: %s, not %s", parent, got, want)
		}
	}
}

// systemd ends the service by SIGTERM, and kills it only 90 s later.
func TestSIGTERMEndsTheProgram(t *testing.T) {
	n, _ := newNode(t, nil, nil)
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), asPlugin+"="+n.socket)
	program.Stderr = os.Stderr
	n.must(program.Start())
	<-n.synchronized
	n.must(program.Process.Signal(syscall.SIGTERM))
	timer := time.AfterFunc(20*time.Second, func() {
		t.Error("mqfair-nri runs 20 s after SIGTERM")
		program.Process.Kill()
	})
	program.Wait()
	timer.Stop()
}
