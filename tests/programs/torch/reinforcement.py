"""An agent with a policy and two observers, each with a world of its own: REINFORCE by remote references."""

import os

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.distributed import rpc
from torch.distributed.rpc import RRef, remote, rpc_async

OBSERVERS, EPISODES, STEPS = 2, 4, 6
AGENT, OBSERVER = "agent", "observer{}"


class World:
    """A point on a line, which the agent should bring to 0."""

    def __init__(self, start):
        self.start = start

    def reset(self):
        self.place = self.start
        return self.state()

    def state(self):
        return torch.tensor([self.place, 1.0], dtype=torch.float64)

    def step(self, action):
        self.place += 0.5 if action == 1 else -0.5
        return self.state(), -abs(self.place)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2).to(torch.float64)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[0.1, -0.2], [0.3, 0.05]], dtype=torch.float64))
            self.layer.bias.zero_()

    def forward(self, state):
        return torch.softmax(self.layer(state), dim=0)


class Observer:
    def __init__(self):
        self.id = rpc.get_worker_info().id
        self.world = World(float(self.id))

    def run_episode(self, agent_rref):
        state = self.world.reset()
        for _ in range(STEPS):
            action = agent_rref.rpc_sync().select_action(self.id, state)
            state, reward = self.world.step(action)
            agent_rref.rpc_sync().report_reward(self.id, reward)


class Agent:
    def __init__(self, world_size):
        self.agent_rref = RRef(self)
        self.policy = Policy()
        self.optimizer = optim.Adam(self.policy.parameters(), lr=0.05)
        self.observers = [remote(rpc.get_worker_info(OBSERVER.format(rank)), Observer) for rank in range(1, world_size)]
        self.clear()

    def clear(self):
        ids = range(1, OBSERVERS + 1)
        self.rewards, self.log_probs = {i: [] for i in ids}, {i: [] for i in ids}

    def select_action(self, observer, state):
        probabilities = self.policy(state)
        action = int(probabilities.argmax()) if len(self.log_probs[observer]) % 2 else observer % 2
        self.log_probs[observer].append(torch.log(probabilities[action]))
        return action

    def report_reward(self, observer, reward):
        self.rewards[observer].append(reward)

    def run_episode(self):
        futures = [rpc_async(ob.owner(), run_observer, args=(ob, self.agent_rref)) for ob in self.observers]
        for future in futures:
            future.wait()

    def finish_episode(self):
        losses = []
        for observer in sorted(self.rewards):
            value = 0.0
            for reward, log_prob in zip(self.rewards[observer][::-1], self.log_probs[observer][::-1]):
                value = reward + 0.9 * value
                losses.append(-log_prob * value)
        loss = torch.stack(losses).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.clear()
        return loss.item()


def run_observer(observer_rref, agent_rref):
    return observer_rref.local_value().run_episode(agent_rref)


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29513")
    if rank == 0:
        rpc.init_rpc(AGENT, rank=rank, world_size=world_size)
        agent = Agent(world_size)
        for _ in range(EPISODES):
            agent.run_episode()
            print("loss", repr(agent.finish_episode()))
        del agent
    else:
        rpc.init_rpc(OBSERVER.format(rank), rank=rank, world_size=world_size)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(OBSERVERS + 1,), nprocs=OBSERVERS + 1, join=True)
