// SPDX-License-Identifier: Apache-2.0
// Is each runtime's cgroup named as people know it, and can none pass for another? The table has paths as found on
// hosts: cgroup v1 and v2, the layouts of systemd and of the runtimes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "daemon/tenants/tenant_names.h"

namespace ssdpulse::tenants {
namespace {

const std::string kId = "8f3c0c1d2e5b46a79788a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6";
const std::string kShort = "8f3c0c1d2e5b";
const std::string kUid = "1c2d3e4f-aabb-4c5d-8e9f-001122334455";
const std::string kUidInSlice = "1c2d3e4f_aabb_4c5d_8e9f_001122334455";

struct Case {
  std::string path;
  std::string name;
  std::string kind;
  std::string cgroup;  // the directory that represents it; empty: the path itself
};

const Case kCases[] = {
    {"/", "/", "root", ""},
    {"", "/", "root", "/"},
    // systemd
    {"/system.slice/nginx.service", "nginx.service", "unit", ""},
    {"/system.slice/system-postgresql.slice/postgresql@15-main.service", "postgresql@15-main.service", "unit", ""},
    {"/system.slice/foo\\x2dbar.service", "foo\\x2dbar.service", "unit", ""},
    {"/system.slice/nginx.service/worker/1", "nginx.service", "unit", "/system.slice/nginx.service"},
    {"/system.slice/run-r0123456789abcdef.scope", "run-r0123456789abcdef.scope", "unit", ""},
    {"/init.scope", "init.scope", "unit", ""},
    {"/system.slice/var-lib-mysql.mount", "var-lib-mysql.mount", "unit", ""},
    {"/batch.slice/nightly.service", "nightly.service", "unit", ""},
    {"/system.slice", "system.slice", "slice", ""},
    {"/user.slice", "user.slice", "slice", ""},
    {"/system.slice/not-a-unit/below", "system.slice", "slice", "/system.slice"},
    // docker
    {"/system.slice/docker-" + kId + ".scope", "docker/" + kShort, "container", ""},
    {"/system.slice/docker-" + kId + ".scope/init.scope", "docker/" + kShort, "container",
     "/system.slice/docker-" + kId + ".scope"},
    {"/system.slice/docker-" + kId + ".scope/system.slice/mysql.service", "docker/" + kShort, "container",
     "/system.slice/docker-" + kId + ".scope"},
    {"/docker/" + kId, "docker/" + kShort, "container", ""},
    {"/docker/" + kId + "/kubelet/kubepods/burstable/pod" + kUid + "/" + kId, "docker/" + kShort, "container",
     "/docker/" + kId},
    {"/docker", "/docker", "cgroup", ""},
    {"/docker/buildkit/x3k9", "/docker/buildkit/x3k9", "cgroup", ""},
    {"/system.slice/docker.service", "docker.service", "unit", ""},
    {"/ecs/2f5b/" + kId, "container/" + kShort, "container", ""},
    // podman
    {"/machine.slice/libpod-" + kId + ".scope", "podman/" + kShort, "container", ""},
    {"/machine.slice/libpod-" + kId + ".scope/container", "podman/" + kShort, "container",
     "/machine.slice/libpod-" + kId + ".scope"},
    {"/machine.slice/libpod-conmon-" + kId + ".scope", "podman/" + kShort, "container", ""},
    {"/libpod_parent/libpod-" + kId, "podman/" + kShort, "container", ""},
    {"/system.slice/web.service/libpod-payload-" + kId, "web.service", "unit", "/system.slice/web.service"},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container",
     "user/1000/podman/" + kShort, "container",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope"},
    // containerd, nerdctl
    {"/system.slice/nerdctl-" + kId + ".scope", "nerdctl/" + kShort, "container", ""},
    {"/default/" + kId, "container/" + kShort, "container", ""},
    // Kubernetes
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kUidInSlice + ".slice/cri-containerd-" + kId +
         ".scope",
     "pod/" + kUid + "/" + kShort, "container", ""},
    {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kUidInSlice + ".slice/crio-" + kId +
         ".scope/container",
     "pod/" + kUid + "/" + kShort, "container",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kUidInSlice + ".slice/crio-" + kId +
         ".scope"},
    {"/kubepods.slice/kubepods-pod" + kUidInSlice + ".slice/docker-" + kId + ".scope", "pod/" + kUid + "/" + kShort,
     "container", ""},
    {"/kubepods.slice/kubepods-pod" + kUidInSlice + ".slice", "pod/" + kUid, "pod", ""},
    {"/kubepods.slice/kubepods-burstable.slice", "kubepods-burstable.slice", "slice", ""},
    {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + kUidInSlice + ".slice/cri-containerd-" + kId +
         ".scope",
     "pod/" + kUid + "/" + kShort, "container", ""},
    {"/kubepods/burstable/pod" + kUid + "/" + kId, "pod/" + kUid + "/" + kShort, "container", ""},
    {"/kubepods/pod" + kUid, "pod/" + kUid, "pod", ""},
    {"/kubepods/pod" + kUid + "/" + kId, "pod/" + kUid + "/" + kShort, "container", ""},
    {"/system.slice/containerd.service/kubepods-burstable-pod" + kUidInSlice + ".slice:cri-containerd:" + kId,
     "pod/" + kUid + "/" + kShort, "container", ""},
    {"/system.slice/containerd.service", "containerd.service", "unit", ""},
    // virtual machines
    {"/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope", "vm/db1", "vm", ""},
    {"/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope/libvirt/emulator", "vm/db1", "vm",
     "/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope"},
    {"/machine.slice/machine-qemu\\x2d12\\x2dweb\\x2dfront.scope/libvirt/vcpu0", "vm/web-front", "vm",
     "/machine.slice/machine-qemu\\x2d12\\x2dweb\\x2dfront.scope"},
    {"/machine/qemu-3-db1.libvirt-qemu/vcpu0", "vm/db1", "vm", "/machine/qemu-3-db1.libvirt-qemu"},
    {"/machine/db1.libvirt-qemu", "vm/db1", "vm", ""},
    {"/qemu.slice/101.scope", "vm/101", "vm", ""},
    // system containers
    {"/lxc.payload.web/system.slice/nginx.service", "lxc/web", "container", "/lxc.payload.web"},
    {"/lxc.monitor.web", "lxc/web", "container", ""},
    {"/lxc/101/ns/system.slice", "lxc/101", "container", "/lxc/101"},
    {"/lxc.payload/c1/init.scope", "lxc/c1", "container", "/lxc.payload/c1"},
    {"/machine.slice/machine-lxc\\x2d17\\x2dweb.scope", "lxc/web", "container", ""},
    {"/machine.slice/machine-arch.scope", "machine/arch", "container", ""},
    {"/machine.slice/systemd-nspawn@arch.service/payload", "systemd-nspawn@arch.service", "unit",
     "/machine.slice/systemd-nspawn@arch.service"},
    // users
    {"/user.slice/user-1000.slice/session-3.scope", "user/1000", "user", "/user.slice/user-1000.slice"},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope", "user/1000", "user",
     "/user.slice/user-1000.slice"},
    // jobs
    {"/slurm/uid_1000/job_42/step_0", "job/42", "job", "/slurm/uid_1000/job_42"},
    {"/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", "job/42", "job",
     "/system.slice/slurmstepd.scope/job_42"},
    {"/system.slice/slurmstepd.scope/system", "slurmstepd.scope", "unit", "/system.slice/slurmstepd.scope"},
    {"/system.slice/node17_slurmstepd.scope/job_4711/step_0/user/task_0", "job/4711", "job",
     "/system.slice/node17_slurmstepd.scope/job_4711"},
    {"/system.slice/node17_slurmstepd.scope/job_4712/step_batch/user/task_0", "job/4712", "job",
     "/system.slice/node17_slurmstepd.scope/job_4712"},
    {"/system.slice/node-a.hpc_2_slurmstepd.scope/job_7/step_extern", "job/7", "job",
     "/system.slice/node-a.hpc_2_slurmstepd.scope/job_7"},
    {"/hpc.slice/hpc-batch.slice/n1_slurmstepd.scope/job_8/step_0", "job/8", "job",
     "/hpc.slice/hpc-batch.slice/n1_slurmstepd.scope/job_8"},
    {"/slurm_node17/uid_1000/job_42/step_0", "job/42", "job", "/slurm_node17/uid_1000/job_42"},
    {"/system.slice/node17_slurmstepd.scope/system", "node17_slurmstepd.scope", "unit",
     "/system.slice/node17_slurmstepd.scope"},
    {"/system.slice/_slurmstepd.scope/job_1", "_slurmstepd.scope", "unit", "/system.slice/_slurmstepd.scope"},
    // none of these
    {"/mesos/17/init.scope", "/mesos/17/init.scope", "cgroup", ""},
    {"/bench-a", "/bench-a", "cgroup", ""},
    // attempts to pass for another
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/user-0.slice/session-1.scope", "user/1000", "user",
     "/user.slice/user-1000.slice"},
    {"/user.slice/user-1000.slice/user@1000.service/system.slice/mysql.service", "user/1000", "user",
     "/user.slice/user-1000.slice"},
    {"/user.slice/user-1000.slice/user@1000.service/machine.slice/machine-qemu\\x2d1\\x2ddb1.scope", "user/1000/vm/db1",
     "vm", ""},
    {"/user.slice/user-1000.slice/user@1000.service/n_slurmstepd.scope/job_1", "user/1000/job/1", "job", ""},
    {"/theirs/below/n_slurmstepd.scope/job_1", "/theirs/below/n_slurmstepd.scope/job_1", "cgroup", ""},
    {"/theirs/system.slice/mysql.service", "/theirs/system.slice/mysql.service", "cgroup", ""},
    {"/system.slice/docker-" + kId.substr(1) + ".scope", "docker-" + kId.substr(1) + ".scope", "unit", ""},
};

TEST(CgroupTenant, is_named_as_people_know_it) {
  for (const Case& one : kCases) {
    const model::Tenant tenant = tenant_of_cgroup(one.path);
    EXPECT_EQ(tenant.name, one.name) << one.path;
    EXPECT_EQ(model::kTenantKindNames[static_cast<std::size_t>(tenant.kind)], one.kind) << one.path;
    EXPECT_EQ(tenant.cgroup, one.cgroup.empty() ? one.path : one.cgroup) << one.path;
  }
}

TEST(CgroupTenant, every_name_is_one_that_the_history_keeps) {
  for (const char* path : {"/system.slice/foo\\x2dbar.service", "/a'b", "/a`b", "/a,b", "/a b", "/a\"b", "/\x7f"}) {
    EXPECT_TRUE(util::is_plain_name(tenant_of_cgroup(path).name)) << path;
  }
}

TEST(CgroupTenant, odd_names_are_cleaned_and_remain_different) {
  const std::string quote = tenant_of_cgroup("/a\"b c,d\n").name;
  EXPECT_EQ(quote.substr(0, 10), "/a_b_c_d_~");
  EXPECT_NE(quote, tenant_of_cgroup("/a'b c,d\n").name);
  EXPECT_NE(quote, tenant_of_cgroup("/a\"b c,d ").name);
  const std::string longest(255, 'x');
  const std::string a = tenant_of_cgroup("/system.slice/" + longest + "a.service").name;
  EXPECT_EQ(a.size(), kMaxTenantNameBytes);
  EXPECT_NE(a, tenant_of_cgroup("/system.slice/" + longest + "b.service").name);
}

RC_GTEST_PROP(CgroupTenant, hostile_bytes_stay_in_bounds, ()) {
  // Meaningful pieces, with any bytes between them.
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element<std::string>("/", "system.slice", ".service", "user.slice", "user-0.slice", "docker-", kId,
                                    ".scope", "machine-qemu\\x2d1\\x2d", "\\x0a", "\\x", "kubepods-pod", ".slice", ":",
                                    "lxc", "job_1", "slurm", "pod", "kubepods", ".libvirt-qemu", std::string(1, 0))));
  std::string path;
  for (const std::string& piece : pieces) {
    path += piece;
  }
  const model::Tenant tenant = tenant_of_cgroup(path);
  RC_ASSERT(!tenant.name.empty());
  RC_ASSERT(tenant.name.size() <= kMaxTenantNameBytes);
  RC_ASSERT(tenant.name.find(',') == std::string::npos);
  RC_ASSERT(util::is_plain_name(tenant.name));
  RC_ASSERT(tenant.cgroup.raw().size() <= 1024U);
  RC_ASSERT(tenant_of_cgroup(path) == tenant);
}

}  // namespace
}  // namespace ssdpulse::tenants
